import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { startEtcd } from '../support/servers.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { newSession, openStore, put, read, succeeded, TIMEOUT } from './store-access.ts'

const etcd = await startEtcd({ after })
const store = openStore({ after }, [etcd.endpoint])

test('a lease, opened, renewed and closed, keeps its key and then removes it', async () => {
  const session = newSession()
  assert.deepEqual(succeeded(await store.openLease(session, 4500, TIMEOUT)).value, { ttlMs: 5000 })
  await put(store, '/leases/key', 'alive', session)
  assert.deepEqual(succeeded(await store.renewLease(session, TIMEOUT)).value, { ttlMs: 5000 })
  assert.equal(await read(store, '/leases/key'), 'alive')
  succeeded(await store.closeLease(session, TIMEOUT))
  assert.equal(await read(store, '/leases/key'), null)
})

test('a lease that is gone renews to a TTL of 0, and closing it again is no failure', async () => {
  const session = newSession()
  succeeded(await store.openLease(session, 5000, TIMEOUT))
  succeeded(await store.closeLease(session, TIMEOUT))
  assert.deepEqual(succeeded(await store.renewLease(session, TIMEOUT)).value, { ttlMs: 0 })
  assert.equal(succeeded(await store.closeLease(session, TIMEOUT)).value, null)
})

test('opening a lease whose number is taken is refused', async () => {
  const session = newSession()
  succeeded(await store.openLease(session, 5000, TIMEOUT))
  const again = await store.openLease(session, 5000, TIMEOUT)
  assert.equal(again.ok === false && again.reason, 'refused')
})

test('a lease that nobody renews expires with its key', async () => {
  const session = newSession()
  const { ttlMs } = succeeded(await store.openLease(session, 1, TIMEOUT)).value
  await put(store, '/leases/expires', '', session)
  await eventually(async () => (await read(store, '/leases/expires')) === null, {
    timeoutMs: ttlMs + 3000,
    what: 'the key is gone',
  })
})

test('a half-open connection costs one renewal, and the next one succeeds on a new connection', async (t) => {
  const proxy = await startTcpProxy(t, etcd.clientPort)
  const behind = openStore(t, [proxy.endpoint])
  const session = newSession()
  succeeded(await behind.openLease(session, 10_000, TIMEOUT))
  succeeded(await behind.renewLease(session, TIMEOUT))
  proxy.stallStanding()
  const startedMs = performance.now()
  const hung = await behind.renewLease(session, { timeoutMs: 300 })
  assert.equal(hung.ok === false && hung.reason, 'unknown-outcome')
  assert.ok(performance.now() - startedMs < 2000)
  assert.deepEqual(succeeded(await behind.renewLease(session, TIMEOUT)).value, { ttlMs: 10_000 })
})

test('renewals under way for several sessions each get their own answer', async () => {
  const sessions = Array.from({ length: 8 }, newSession)
  const [gone] = sessions
  assert.ok(gone !== undefined)
  for (const session of sessions) succeeded(await store.openLease(session, 9000, TIMEOUT))
  succeeded(await store.closeLease(gone, TIMEOUT))
  const replies = await Promise.all(sessions.map((session) => store.renewLease(session, TIMEOUT)))
  assert.deepEqual(
    replies.map((reply) => succeeded(reply).value.ttlMs),
    sessions.map((session) => (session === gone ? 0 : 9000)),
  )
})
