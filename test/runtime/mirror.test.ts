/** Plan: the mirror over an etcd that breaks, lags, forgets, compacts, is restored: what it shows after. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTenureError } from '../../src/core/tenure-error.ts'
import type { Mirror } from '../../src/runtime/mirror.ts'
import { owned } from '../core/ownership-cases.ts'
import { createMirrorWorld, KEYS, RESYNC_MS, shown } from './mirror-world.ts'

type World = ReturnType<typeof createMirrorWorld>

async function started(world: World): Promise<Mirror> {
  const mirror = world.mirror()
  await world.clock.run(mirror.ready)
  return mirror
}

async function equal(world: World, mirror: Mirror, limitMs: number): Promise<void> {
  const same = () => shown(mirror).join() === world.truth().join()
  const reached = await world.clock.runUntil(same, { limitMs })
  assert.ok(reached, `shows ${shown(mirror)}, stands ${world.truth()}`)
}

test('mirror, started, lists once and follows every change', async () => {
  const world = createMirrorWorld()
  await world.write(1, 1)
  const mirror = await started(world)
  assert.deepEqual(shown(mirror), ['1:1'])
  await world.write(1, 2)
  await world.write(2, 1)
  await world.erase(1)
  await equal(world, mirror, 100)
  assert.deepEqual(world.lists(), ['start'])
  mirror.close()
})

test('mirror, first lists fail, keeps trying', async () => {
  const world = createMirrorWorld()
  await world.write(1, 1)
  for (let call = 0; call < 3; call += 1) world.store.failNext('not-executed', 'list')
  const mirror = await started(world)
  assert.deepEqual([shown(mirror), world.lists()], [['1:1'], ['start']])
  mirror.close()
})

test('mirror, watch broken, takes up where it was without a new list', async () => {
  const world = createMirrorWorld()
  const mirror = await started(world)
  await world.write(1, 1)
  await equal(world, mirror, 100)
  world.etcd.restart()
  await world.write(1, 2)
  await world.erase(1)
  await world.write(2, 5)
  await equal(world, mirror, 5_000)
  assert.deepEqual(world.lists(), ['start'])
  mirror.close()
})

test('mirror, compacted while its watch was broken, lists again', async () => {
  const world = createMirrorWorld()
  const mirror = await started(world)
  await world.write(1, 1)
  await equal(world, mirror, 100)
  world.store.disconnect()
  await world.write(1, 2)
  await world.write(2, 1)
  world.etcd.compact()
  world.store.reconnect()
  await equal(world, mirror, 10_000)
  assert.deepEqual(world.lists(), ['start', 'compacted'])
  await world.write(3, 1)
  await equal(world, mirror, 1_000)
  mirror.close()
})

test('mirror, watch that hears nothing more, is found out by the next check', async () => {
  const world = createMirrorWorld()
  const mirror = await started(world)
  world.store.silenceWatches()
  await world.write(1, 1)
  await equal(world, mirror, 2 * RESYNC_MS)
  assert.deepEqual(world.lists(), ['start', 'out of step'])
  await world.write(1, 2)
  await equal(world, mirror, 100)
  mirror.close()
})

test('mirror, change lost in the middle of others, is found by the sweep', async () => {
  const world = createMirrorWorld()
  await world.write(1, 1)
  await world.write(2, 1)
  const mirror = await started(world)
  world.store.disconnect()
  await world.write(1, 2)
  world.store.faults.skipHistoryChance = 1
  world.store.reconnect()
  // Up again, having missed generation 2; then others change, and count and newest revision agree.
  await world.clock.advance(120)
  world.store.faults.skipHistoryChance = 0
  await world.write(2, 2)
  await world.clock.advance(100)
  assert.deepEqual(mirror.state.summary().newestModRevision, world.etcd.revision())
  assert.deepEqual(shown(mirror), ['1:1', '2:2'])
  await equal(world, mirror, 2 * RESYNC_MS)
  assert.deepEqual(world.lists(), ['start', 'out of step'])
  mirror.close()
})

test('mirror, change lost while others go on, is found beside them', async () => {
  const world = createMirrorWorld()
  const mirror = await started(world)
  world.store.silenceWatches()
  await world.write(7, 1)
  await world.write(1, 1)
  // The connection breaks: the check opens a watch that hears of all that follows, and lags.
  world.store.faults.skipHistoryChance = 1
  world.store.faults.watchDelay = { minMs: 300, maxMs: 300 }
  world.etcd.restart()
  const found = () => shown(mirror).includes('7:1')
  for (let generation = 2; generation <= 150 && !found(); generation += 1) {
    await world.write(1, generation)
    await world.clock.advance(99)
  }
  assert.ok(found(), 'found within 15 s')
  mirror.close()
})

test('mirror, busy group whose watch lags, neither lists nor checks without pause', async () => {
  const world = createMirrorWorld()
  const mirror = await started(world)
  world.store.faults.watchDelay = { minMs: 400, maxMs: 400 }
  const before = world.store.calls.transact
  for (let generation = 1; generation <= 600; generation += 1) {
    await world.write(1, generation)
    await world.clock.advance(99)
  }
  const checks = world.store.calls.transact - before
  assert.ok(checks <= 20, `${checks} checks in a minute`)
  await equal(world, mirror, 1_000)
  assert.deepEqual(world.lists(), ['start'])
  mirror.close()
})

test('mirror, list that is stale, never takes the state back', async () => {
  const world = createMirrorWorld()
  const mirror = await started(world)
  world.store.freezeReads()
  for (let generation = 1; generation <= 5; generation += 1) await world.write(1, generation)
  await equal(world, mirror, 100)
  const { revision } = mirror.state
  let lowest = revision
  mirror.subscribe({
    changed: () => {
      lowest = Math.min(lowest, mirror.state.revision)
    },
    rewound: () => assert.fail('nothing was restored'),
  })
  // The watch goes deaf, so that the check asks for a list, and the list is stale.
  world.store.silenceWatches()
  await world.write(1, 6)
  await world.clock.advance(3 * RESYNC_MS)
  assert.equal(lowest, revision)
  await equal(world, mirror, 1_000)
  world.store.thawReads()
  await world.write(1, 7)
  await equal(world, mirror, 1_000)
  mirror.close()
})

test('mirror, store restored, says so once and shows what stands now', async () => {
  const world = createMirrorWorld()
  await world.write(1, 1)
  const backup = world.etcd.snapshot()
  const mirror = await started(world)
  for (let generation = 2; generation <= 9; generation += 1) await world.write(1, generation)
  await world.write(2, 1)
  await equal(world, mirror, 100)
  const rewound: string[] = []
  mirror.subscribe({ changed: () => {}, rewound: () => void rewound.push('rewound') })
  world.etcd.restore(backup)
  await equal(world, mirror, 2 * RESYNC_MS)
  assert.deepEqual([shown(mirror), rewound], [['1:1'], ['rewound']])
  assert.equal(mirror.state.revision, world.etcd.revision())
  await world.write(1, 2)
  await equal(world, mirror, 1_000)
  mirror.close()
})

test('mirror, learning from a reply, runs ahead and is not set back by the watch', async () => {
  const world = createMirrorWorld()
  const mirror = await started(world)
  const told: string[] = []
  const teller = { changed: () => void told.push('teller'), rewound: () => {} }
  mirror.subscribe(teller)
  mirror.subscribe({ changed: () => void told.push('other'), rewound: () => {} })
  world.store.faults.watchDelay = { minMs: 1_000, maxMs: 1_000 }
  await world.write(1, 1)
  await world.write(1, 2)
  const [entry] = world.etcd.entries(KEYS.partition(1))
  assert.ok(entry !== undefined)
  mirror.learn(entry, teller)
  assert.deepEqual([shown(mirror), told], [['1:2'], ['other']])
  await world.clock.advance(5_000)
  assert.deepEqual([shown(mirror), told], [['1:2'], ['other']])
  mirror.close()
})

/** What a transaction's reply would show of the partition now. */
function replyOf(world: World, partition: number) {
  const [entry] = world.etcd.entries(KEYS.partition(partition))
  assert.ok(entry !== undefined)
  return entry
}

const NOBODY = { changed: () => {}, rewound: () => {} }

test('mirror, learning while a check is under way, takes it in', async () => {
  const world = createMirrorWorld()
  const mirror = await started(world)
  const before = world.store.calls.transact
  world.store.faults.requestDelay = { minMs: 400, maxMs: 500 }
  await world.clock.runUntil(() => world.store.calls.transact > before, { limitMs: 2 * RESYNC_MS })
  world.store.silenceWatches()
  await world.write(1, 1)
  assert.equal(mirror.learn(replyOf(world, 1), NOBODY), true)
  assert.deepEqual(shown(mirror), ['1:1'])
  mirror.close()
})

test('mirror, learning while a list is under way, leaves it to the list', async () => {
  const world = createMirrorWorld()
  await world.write(1, 1)
  const mirror = world.mirror()
  assert.equal(mirror.learn(replyOf(world, 1), NOBODY), false)
  await world.clock.run(mirror.ready)
  assert.deepEqual(shown(mirror), ['1:1'])
  mirror.close()
})

test('mirror, record of an unknown version at the start, fails with a clear error', async () => {
  const world = createMirrorWorld()
  await world.putRaw(KEYS.partition(1), owned().raw.replace('"v":1', '"v":2'))
  const mirror = world.mirror()
  await assert.rejects(world.clock.run(mirror.ready), (error) =>
    isTenureError(error, 'record-version-unknown'),
  )
})

test('mirror, closed in the midst of anything, asks and tells nothing more', async () => {
  for (const closeAfterMs of [0, 0.5, 1, 20, RESYNC_MS * 0.8, RESYNC_MS * 1.2]) {
    const world = createMirrorWorld()
    const mirror = world.mirror()
    mirror.ready.catch(() => {})
    await world.clock.advance(closeAfterMs)
    mirror.close()
    mirror.subscribe({ changed: () => assert.fail('told'), rewound: () => assert.fail('told') })
    const asked = { ...world.store.calls }
    await world.write(1, 1)
    world.etcd.restart()
    await world.clock.advance(3 * RESYNC_MS)
    assert.deepEqual(world.store.calls, asked, `closed after ${closeAfterMs} ms`)
  }
})
