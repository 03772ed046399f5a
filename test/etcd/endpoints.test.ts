import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { findFreePorts } from '../../src/dev/servers-process.ts'
import { createEtcdStore } from '../../src/etcd/etcd-store.ts'
import type { Store } from '../../src/ports/store.ts'
import { requirePassword } from '../support/etcd-admin.ts'
import { eventually } from '../support/eventually.ts'
import { startRequestCounter } from '../support/request-counter.ts'
import { startEtcd, temporaryFolder } from '../support/servers.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { newSession, openStore, put, read, record, succeeded, TIMEOUT } from './store-access.ts'

const etcd = await startEtcd({ after })
const store = openStore({ after }, [etcd.endpoint])

function write(to: Store, key: string, timeoutMs = 500) {
  return to.transact(
    { compare: [], success: [{ type: 'put', key, value: '' }], failure: [] },
    { timeoutMs },
  )
}

test('with the first endpoint refused, each kind of call fails once at most, as not executed, then works', async (t) => {
  const [refusedPort = 0] = await findFreePorts(1)
  const two = openStore(t, [`http://127.0.0.1:${refusedPort}`, etcd.endpoint])
  const refused = await write(two, '/two/a')
  assert.equal(refused.ok === false && refused.reason, 'not-executed')
  const revision = succeeded(await write(two, '/two/a')).revision

  const session = newSession()
  assert.equal((await two.openLease(session, 5000, TIMEOUT)).ok, false)
  succeeded(await two.openLease(session, 5000, TIMEOUT))

  const seen = record()
  two.watch('/two/', revision, seen.handler)
  await eventually(() => seen.ends.length === 1, { timeoutMs: 10_000, what: 'the watch ended' })
  two.watch('/two/', revision, seen.handler)
  await eventually(() => seen.calls.length === 1, { timeoutMs: 10_000, what: 'the event' })
})

test('with the first endpoint a black hole, calls and watches end in time and move on', async (t) => {
  const hole = await startTcpProxy(t, etcd.clientPort)
  hole.pause()
  const two = openStore(t, [hole.endpoint, etcd.endpoint])
  const startedMs = performance.now()
  const lost = await write(two, '/hole/a', 400)
  assert.equal(lost.ok, false)
  assert.ok(performance.now() - startedMs < 2000)
  const revision = succeeded(await write(two, '/hole/a', 3000)).revision

  const seen = record()
  two.watch('/hole/', revision, seen.handler)
  await eventually(() => seen.ends.length === 1, { timeoutMs: 9000, what: 'the watch ended' })
  two.watch('/hole/', revision, seen.handler)
  await eventually(() => seen.calls.length === 1, { timeoutMs: 10_000, what: 'the event' })
})

test('many calls that fail at one endpoint together move on by one, not past the live one', async (t) => {
  const [refusedPort = 0] = await findFreePorts(1)
  const two = openStore(t, [`http://127.0.0.1:${refusedPort}`, etcd.endpoint])
  await Promise.all(Array.from({ length: 10 }, (_, index) => write(two, `/many/${index}`)))
  succeeded(await write(two, '/many/after', 3000))
})

test('a lost reply is an unknown outcome, and the transaction was carried out once', async (t) => {
  const counter = await startRequestCounter(t, etcd.clientPort)
  const behind = openStore(t, [counter.endpoint])
  await put(behind, '/lost/key', '1')
  counter.reset()
  const lost = counter.loseNextReply('KV/Txn')
  const reply = await behind.transact(
    {
      compare: [{ type: 'value-equals', key: '/lost/key', value: '1' }],
      success: [{ type: 'put', key: '/lost/key', value: '2' }],
      failure: [{ type: 'put', key: '/lost/key', value: 'sent twice' }],
    },
    TIMEOUT,
  )
  await lost
  assert.equal(reply.ok === false && reply.reason, 'unknown-outcome')
  assert.equal(counter.count('KV/Txn'), 1)
  assert.equal(await read(store, '/lost/key'), '2')
})

test('a reply that comes too late is an unknown outcome, and the call ended in time', async (t) => {
  const proxy = await startTcpProxy(t, etcd.clientPort)
  const behind = openStore(t, [proxy.endpoint])
  await put(behind, '/late/key', '1')
  proxy.pause('to-client')
  const startedMs = performance.now()
  const reply = await write(behind, '/late/other', 300)
  assert.equal(reply.ok === false && reply.reason, 'unknown-outcome')
  assert.ok(performance.now() - startedMs < 2000)
  await eventually(async () => (await read(store, '/late/other')) !== null, {
    timeoutMs: 10_000,
    what: 'the write landed',
  })
})

test('etcd killed and started again: failures are values meanwhile, and the same store goes on', async (t) => {
  const own = await startEtcd(t)
  const to = openStore(t, [own.endpoint])
  const first = await put(to, '/killed/a', '1')
  const seen = record()
  to.watch('/killed/', first, seen.handler)
  await eventually(() => seen.calls.length === 1, { timeoutMs: 10_000, what: 'the first event' })
  await own.kill()
  await eventually(() => seen.ends.length === 1, { timeoutMs: 10_000, what: 'the watch ended' })
  assert.equal(seen.ends[0]?.reason, 'broken')
  const down = await eventually(
    async () => {
      const reply = await write(to, '/killed/b')
      return !reply.ok && reply.reason === 'not-executed' && reply
    },
    { timeoutMs: 10_000, what: 'the store knows that nothing listens' },
  )
  assert.match(down.detail, /ECONNREFUSED/)
  await own.restart()
  await eventually(async () => (await write(to, '/killed/c')).ok, {
    timeoutMs: 10_000,
    what: 'writes work again',
  })
  assert.equal(await read(to, '/killed/a'), '1')
})

test('name and password are used, survive a restart that forgets all tokens, and wrong ones are refused', async (t) => {
  const own = await startEtcd(t)
  await requirePassword(own.endpoint, 'correct')
  const right = openStore(t, [own.endpoint], { username: 'root', password: 'correct' })
  const first = await put(right, '/auth/a', '1')
  const wrong = openStore(t, [own.endpoint], { username: 'root', password: 'guessed' })
  const refused = await write(wrong, '/auth/b', 3000)
  assert.equal(refused.ok === false && refused.reason, 'refused')
  assert.ok(refused.ok === false && !refused.detail.includes('guessed'))
  const nobody = await write(openStore(t, [own.endpoint]), '/auth/b', 3000)
  assert.equal(nobody.ok === false && nobody.reason, 'refused')

  await own.restart()
  await eventually(async () => (await write(right, '/auth/c', 3000)).ok, {
    timeoutMs: 10_000,
    what: 'writes work under a new token',
  })
  const seen = record()
  const open = () => right.watch('/auth/', first, seen.handler)
  open()
  await eventually(
    () => {
      if (seen.calls.length === 0 && seen.ends.length > 0) {
        seen.ends.length = 0
        open()
      }
      return seen.calls.length > 0
    },
    { timeoutMs: 10_000, what: 'a watch works under a new token' },
  )
})

test('over TLS with client certificates, the store works, and without one it is turned away', async (t) => {
  const folder = await temporaryFolder(t)
  const files = makeCertificates(folder)
  const [clientPort = 0] = await findFreePorts(1)
  // The server's own probe speaks plain text, so that port stays; the secure one is another.
  const own = await startEtcd(t)
  await own.stop()
  const secure = `https://127.0.0.1:${clientPort}`
  const tls = await startEtcd(t, {
    directory: folder,
    extraArgs: [
      ...['--listen-client-urls', `http://127.0.0.1:${own.clientPort},${secure}`],
      ...['--advertise-client-urls', secure, '--client-cert-auth'],
      ...['--trusted-ca-file', files.caFile],
      ...['--cert-file', files.certFile, '--key-file', files.keyFile],
    ],
    clientPort: own.clientPort,
  })
  assert.ok(tls.running())
  await put(openStore(t, [secure], { tls: files }), '/tls/a', '1')
  const stranger = openStore(t, [secure], { tls: { caFile: files.caFile } })
  assert.equal((await write(stranger, '/tls/b')).ok, false)
})

test('a closed store answers at once, as not executed, and its watch ends', async () => {
  const closed = createEtcdStore({ endpoints: [etcd.endpoint] })
  succeeded(await write(closed, '/closed/a', 3000))
  await closed.close()
  const reply = await write(closed, '/closed/a')
  assert.equal(reply.ok === false && reply.reason, 'not-executed')
  const seen = record()
  closed.watch('/closed/', 1, seen.handler)
  await eventually(() => seen.ends.length === 1, { timeoutMs: 1000, what: 'the watch ended' })
})

test('options that cannot be meant are invalid-config', () => {
  const bad = [
    { endpoints: [] },
    { endpoints: ['ftp://127.0.0.1:2379'] },
    { endpoints: ['http://127.0.0.1:2379/path'] },
    { endpoints: ['http://127.0.0.1:2379', 'https://127.0.0.1:2380'] },
    { endpoints: ['127.0.0.1:2379'], username: 'root' },
    { endpoints: ['127.0.0.1:2379'], tls: { caFile: '/none/ca.pem' } },
    { endpoints: ['127.0.0.1:2379'], tls: { certFile: '/none/cert.pem' } },
  ]
  for (const options of bad) {
    assert.throws(
      () => createEtcdStore(options),
      (error) => isTenureError(error, 'invalid-config'),
      JSON.stringify(options),
    )
  }
})

function makeCertificates(folder: string) {
  const path = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    ...['req', '-x509', ...key, '-days', '2', '-subj', '/CN=test authority'],
    ...['-keyout', path('ca.key'), '-out', path('ca.pem')],
  )
  openssl(
    ...['req', ...key, '-subj', '/CN=127.0.0.1', '-keyout', path('key.pem')],
    ...['-out', path('request.pem')],
  )
  writeFileSync(path('extensions'), 'subjectAltName=IP:127.0.0.1\n')
  openssl(
    ...[
      'x509',
      '-req',
      '-in',
      path('request.pem'),
      '-CA',
      path('ca.pem'),
      '-CAkey',
      path('ca.key'),
    ],
    ...['-CAcreateserial', '-days', '2', '-extfile', path('extensions'), '-out', path('cert.pem')],
  )
  return { caFile: path('ca.pem'), certFile: path('cert.pem'), keyFile: path('key.pem') }
}
