import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Store } from '../../src/ports/store.ts'
import { compact } from '../support/etcd-admin.ts'
import { eventually } from '../support/eventually.ts'
import { startEtcd, startEtcdCluster } from '../support/servers.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { openStore, put, record, run } from './store-access.ts'

const etcd = await startEtcd(
  { after },
  {
    extraArgs: ['--experimental-watch-progress-notify-interval', '100ms'],
  },
)
const store = openStore({ after }, [etcd.endpoint])

/** Writes one key so many times, some at once, and returns the revisions in order. */
async function writeRevisions(prefix: string, count: number): Promise<readonly number[]> {
  const revisions: number[] = []
  const value = 'x'.repeat(200)
  for (let done = 0; done < count; done += 100) {
    const batch = Array.from({ length: Math.min(100, count - done) }, (_, index) =>
      put(store, `${prefix}${done + index}`, value),
    )
    revisions.push(...(await Promise.all(batch)))
  }
  return revisions.sort((a, b) => a - b)
}

test('a watch, from a past revision on, hands over old and new events, all events of one revision in one call', async (t) => {
  const seen = record()
  const first = await put(store, '/watch/a', '1')
  const watch = store.watch('/watch/', first, seen.handler)
  t.after(() => watch.close())
  await put(store, '/watchnot', 'outside the prefix')
  await run(
    store,
    [],
    [
      { type: 'put', key: '/watch/b', value: '2' },
      { type: 'delete', key: '/watch/a' },
      { type: 'put', key: '/watch/c', value: '3' },
    ],
  )
  await eventually(() => seen.revisions().length === 4, { timeoutMs: 10_000, what: '4 events' })
  const together = seen.calls.find((call) => call.some((event) => event.type === 'delete')) ?? []
  const types = together.map((event) =>
    event.type === 'put' ? `put ${event.entry.key}=${event.entry.value}` : `delete ${event.key}`,
  )
  assert.deepEqual(types.slice(-3).sort(), ['delete /watch/a', 'put /watch/b=2', 'put /watch/c=3'])
  assert.deepEqual(seen.ends, [])
})

test('progress is never ahead of the events that were handed over', async (t) => {
  const written = await writeRevisions('/progress/', 300)
  const last = written.at(-1) ?? 0
  const seen = record()
  let early = 0
  const watch = store.watch('/progress/', written[0] ?? 1, {
    ...seen.handler,
    progress(revision) {
      seen.handler.progress(revision)
      const due = written.filter((one) => one <= revision).length
      if (seen.revisions().length < due) early += 1
    },
  })
  t.after(() => watch.close())
  await eventually(() => seen.progress.some((revision) => revision >= last), {
    timeoutMs: 10_000,
    what: 'progress up to the last event',
  })
  assert.deepEqual(seen.revisions(), written)
  assert.equal(early, 0)
})

test('a watch that is cut at any byte of its catch-up and opened anew after its last event loses and repeats nothing', async (t) => {
  const written = await writeRevisions('/cut/', 1500)
  const proxy = await startTcpProxy(t, etcd.clientPort)
  // From inside the first frames, over each response's edges, to near the end of some 330 kB.
  for (const bytes of [30, 61, 500, 9_000, 70_001, 190_003, 245_017, 290_000]) {
    const behind = openStore(t, [proxy.endpoint])
    const cut = proxy.cutAfter(bytes, 'to-client')
    const seen = await watchToEnd(behind, '/cut/', written)
    // Before the stream began, the transport may have begun it anew by itself: no end is told then.
    await cut
    assert.deepEqual(seen.revisions(), written, `cut at byte ${bytes}`)
    await behind.close()
  }
})

/** Follows the port's contract: each next watch starts after the last event that was handed over. */
async function watchToEnd(behind: Store, prefix: string, written: readonly number[]) {
  const seen = record()
  let nextRevision = written[0] ?? 1
  let ends = 0
  let watch = behind.watch(prefix, nextRevision, seen.handler)
  await eventually(
    () => {
      if (seen.ends.length > ends) {
        ends = seen.ends.length
        nextRevision = (seen.revisions().at(-1) ?? nextRevision - 1) + 1
        watch = behind.watch(prefix, nextRevision, seen.handler)
      }
      return seen.revisions().length >= written.length
    },
    { timeoutMs: 30_000, what: `${written.length} events` },
  )
  watch.close()
  return seen
}

test('a watch from a compacted revision ends as compacted, one that has caught up goes on', async (t) => {
  const first = await put(store, '/compact/key', '1')
  const caughtUp = record()
  const watch = store.watch('/compact/', first, caughtUp.handler)
  t.after(() => watch.close())
  await eventually(() => caughtUp.revisions().length === 1, { timeoutMs: 10_000, what: 'an event' })
  const second = await put(store, '/compact/key', '2')
  await compact(etcd.endpoint, second)

  const late = record()
  store.watch('/compact/', first, late.handler)
  await eventually(() => late.ends.length === 1, { timeoutMs: 10_000, what: 'the watch ended' })
  assert.deepEqual(late.ends, [{ reason: 'compacted', compactRevision: second }])
  assert.deepEqual(late.calls, [])

  const listed = await store.list(
    { prefix: '/compact/', limit: 1, atRevision: first },
    { timeoutMs: 3000 },
  )
  assert.equal(listed.ok === false && listed.reason, 'compacted')

  const third = await put(store, '/compact/key', '3')
  await eventually(() => caughtUp.revisions().length === 3, { timeoutMs: 10_000, what: '3 events' })
  assert.deepEqual(caughtUp.revisions(), [first, second, third])
  assert.deepEqual(caughtUp.ends, [])
})

test('a watch whose connection falls silent is found broken by pings', async (t) => {
  const proxy = await startTcpProxy(t, etcd.clientPort)
  const behind = openStore(t, [proxy.endpoint])
  const seen = record()
  const first = await put(store, '/silent/a', '')
  behind.watch('/silent/', first, seen.handler)
  await eventually(() => seen.calls.length === 1, { timeoutMs: 10_000, what: 'the first event' })
  proxy.stallStanding()
  await eventually(() => seen.ends.length === 1, { timeoutMs: 12_000, what: 'the watch ended' })
  assert.equal(seen.ends[0]?.reason, 'broken')
})

test('a watch that was closed says nothing more', async () => {
  const seen = record()
  const first = await put(store, '/closed/a', '')
  const watch = store.watch('/closed/', first, seen.handler)
  await eventually(() => seen.calls.length === 1, { timeoutMs: 10_000, what: 'the first event' })
  const control = record()
  const other = store.watch('/closed/', first + 1, control.handler)
  watch.close()
  await put(store, '/closed/a', '2')
  await eventually(() => control.calls.length === 1, { timeoutMs: 10_000, what: 'the other watch' })
  other.close()
  assert.equal(seen.calls.length, 1)
  assert.deepEqual(seen.ends, [])
})

test('at a member without a leader, a watch ends as broken and a write is certain not to be done', async (t) => {
  const cluster = await startEtcdCluster(t, { size: 3 })
  const [alone, ...others] = cluster.members
  assert.ok(alone !== undefined)
  const isolated = openStore(t, [alone.endpoint])
  const seen = record()
  const first = await put(isolated, '/alone/a', '')
  isolated.watch('/alone/', first, seen.handler)
  await eventually(() => seen.calls.length === 1, { timeoutMs: 10_000, what: 'the first event' })
  for (const member of others) member.pause()
  t.after(() => {
    for (const member of others) member.resume()
  })
  await eventually(() => seen.ends.length === 1, { timeoutMs: 15_000, what: 'the watch ended' })
  assert.equal(seen.ends[0]?.reason, 'broken')
  const reply = await eventually(
    async () => {
      const one = await isolated.transact(
        { compare: [], success: [{ type: 'put', key: '/alone/b', value: '' }], failure: [] },
        { timeoutMs: 500 },
      )
      return !one.ok && one.reason === 'not-executed' && one
    },
    { timeoutMs: 10_000, what: 'the member knows that it has no leader' },
  )
  assert.match(reply.detail, /no leader/)
})
