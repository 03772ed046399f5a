import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEtcdWorld, hear } from './etcd-world.ts'

test('delays differ from event to event, their order does not', async () => {
  const { clock, store, write } = createEtcdWorld()
  store.faults.watchDelay = { minMs: 0, maxMs: 5_000 }
  const { heard } = hear(store, 1)
  const lines = Array.from({ length: 50 }, (_, index) => `a=${index}`)
  await write(...lines)
  assert.ok(heard.length < 50)
  await clock.advance(6_000)
  assert.deepEqual(heard, lines)
})

test('a silenced watch stays open and hears nothing; a new one hears all', async () => {
  const { clock, store, write } = createEtcdWorld()
  const silent = hear(store, 1)
  await write('a=1')
  await clock.advance(10)
  store.silenceWatches()
  await write('a=2')
  const fresh = hear(store, 1)
  await clock.advance(60_000)
  assert.deepEqual([silent.heard, silent.ends], [['a=1'], []])
  assert.deepEqual(fresh.heard, ['a=1', 'a=2'])
})

test('a gap while catching up loses history without a word, later changes arrive', async () => {
  const { clock, store, write } = createEtcdWorld()
  await write('a=1', 'a=2')
  store.faults.skipHistoryChance = 1
  const { heard, ends } = hear(store, 1)
  await clock.advance(10)
  await write('a=3')
  await clock.advance(10)
  assert.deepEqual([heard, ends], [['a=3'], []])
})

test('replies cut off for a moment are held and come in order; for long, and the watch breaks', async () => {
  const { clock, store, write } = createEtcdWorld()
  const short = hear(store, 1)
  await clock.advance(10)
  store.cutOff({ requests: false, replies: true })
  await write('a=1', 'a=2')
  await clock.advance(1_000)
  assert.deepEqual(short.heard, [])
  store.heal()
  await clock.advance(0)
  assert.deepEqual(short.heard, ['a=1', 'a=2'])
  store.cutOff({ requests: false, replies: true })
  await write('a=3')
  await clock.advance(10_000)
  assert.deepEqual([short.heard.length, short.ends], [2, ['broken']])
})

test('a watch opened while requests are cut off breaks instead of waiting for ever', async () => {
  const { clock, store } = createEtcdWorld()
  store.cutOff({ requests: true, replies: true })
  const { ends } = hear(store, 1)
  await clock.advance(10_000)
  assert.deepEqual(ends, ['broken'])
})

test('a restart, a disconnect and a lost leader break watches once', async () => {
  const { clock, etcd, store, write } = createEtcdWorld()
  const breaks = [
    () => etcd.restart(),
    () => store.disconnect(),
    () => etcd.setAvailability('no-leader'),
  ]
  for (const breakIt of breaks) {
    const { heard, ends } = hear(store, etcd.revision() + 1)
    await write('a=1')
    await clock.advance(10)
    breakIt()
    await clock.advance(10_000)
    assert.deepEqual([heard, ends], [['a=1'], ['broken']])
    store.reconnect()
    etcd.setAvailability('up')
  }
})

test('events on their way when the connection breaks are lost with it', async () => {
  const { clock, store, write } = createEtcdWorld()
  store.faults.watchDelay = { minMs: 100, maxMs: 100 }
  const { heard, ends } = hear(store, 1)
  await write('a=1')
  store.disconnect()
  await clock.advance(1_000)
  assert.deepEqual([heard, ends], [[], ['broken']])
})

test('compaction ends a watch that needs older history and leaves the others', async () => {
  const { clock, etcd, store, write } = createEtcdWorld()
  const open = hear(store, 1)
  await write('a=1', 'a=2', '-a', 'b=1')
  etcd.compact()
  const late = hear(store, 2)
  await write('b=2')
  await clock.advance(10)
  assert.deepEqual([late.heard, late.ends], [[], ['compacted']])
  assert.deepEqual([open.heard, open.ends], [['a=1', 'a=2', '-a', 'b=1', 'b=2'], []])
  assert.deepEqual(
    etcd.entries('').map((entry) => entry.key),
    ['b'],
  )
})

test('compaction frees old versions and deleted keys, the last trace of them included', async () => {
  const { clock, etcd, store, write } = createEtcdWorld()
  const bytes = async () => {
    const reply = await clock.run(store.status({ timeoutMs: 100 }))
    return reply.ok ? reply.value.databaseBytes : Number.NaN
  }
  await write('kept=1')
  const before = await bytes()
  await write('kept=2', 'gone=1', 'gone=2', '-gone')
  assert.ok((await bytes()) > before)
  etcd.compact()
  assert.equal(await bytes(), before)
})

test('a restore rewinds keys and leases, breaks watches, and repeats revisions', async () => {
  const { clock, etcd, store, write, truth, lease } = createEtcdWorld()
  const session = await lease(5_000)
  await write('a=1')
  const snapshot = etcd.snapshot()
  const watching = hear(store, 1)
  await write('a=2', 'b=2')
  etcd.revokeLease(session)
  const reached = etcd.revision()
  etcd.restore(snapshot)
  await clock.advance(10)
  assert.deepEqual(watching.ends, ['broken'])
  assert.deepEqual(truth(), ['a=1', 'leased='])
  // A watch from where the old history ended waits for it to come again, and misses what differs.
  const late = hear(store, reached)
  await write('c=3', 'c=4', 'c=5')
  await clock.advance(10)
  assert.deepEqual([etcd.revision(), late.heard], [reached, ['c=5']])
  await clock.advance(7_000)
  assert.deepEqual(truth(), ['a=1', 'c=5'])
  etcd.restore(snapshot)
  assert.deepEqual([etcd.revision(), truth()], [snapshot.revision, ['a=1', 'leased=']])
})

test('a wiped cluster starts at revision 1 with nothing in it', async () => {
  const { etcd, write, truth, lease, renew } = createEtcdWorld()
  const session = await lease(60_000)
  await write('a=1')
  etcd.wipe()
  assert.deepEqual([etcd.revision(), truth(), await renew(session)], [1, [], 0])
  await write('b=1')
  assert.deepEqual([etcd.revision(), truth()], [2, ['b=1']])
})
