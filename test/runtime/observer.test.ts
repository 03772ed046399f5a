/** Plan: publishers and observers on the in-memory NATS, which loses what it is told to lose. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TenureErrorCode } from '../../src/core/tenure-error.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { createMapPublisher } from '../../src/runtime/map-publisher.ts'
import { createObserver } from '../../src/runtime/observer.ts'
import type { Observer } from '../../src/runtime/observer-types.ts'
import { createServingHints } from '../../src/runtime/serving-hints.ts'
import {
  createMemoryNats,
  createSeededRandom,
  createVirtualClock,
} from '../../src/testing/index.ts'
import { createMirror, createRecorder, createTruth, GROUP, INCARNATION } from './map-world.ts'

function createWorld(partitions = 16, options: { maxPayloadBytes?: number } = {}) {
  const clock = createVirtualClock()
  const random = createSeededRandom(7)
  const nats = createMemoryNats({ clock, random: random.fork('nats'), ...options })
  const truth = createTruth(partitions)
  const telemetry = createRecorder()
  const serve = (publisherId: string, ageMs?: () => number) => {
    const broadcast = nats.connect(publisherId)
    const mirror = createMirror(truth)
    mirror.catchUp()
    const { state } = mirror
    const publisher = createMapPublisher({
      ...{ group: GROUP, broadcast, clock, state, telemetry, publisherId },
      ...(ageMs === undefined ? {} : { ageMs }),
    })
    mirror.publishers.push(publisher)
    return { broadcast, mirror, publisher }
  }
  const observe = (name: string) => {
    const broadcast = nats.connect(name)
    const observerRandom = random.fork(name)
    const observer = createObserver({
      ...{ group: GROUP, broadcast, clock, random: observerRandom, telemetry },
    })
    return { broadcast, observer }
  }
  return { clock, random, nats, truth, telemetry, serve, observe }
}

type World = ReturnType<typeof createWorld>
type Serve = ReturnType<World['serve']>

/** The observer sees, entry by entry, what the mirror holds. */
function equals(observer: Observer, { publisher, mirror }: Serve): boolean {
  const map = publisher.map()
  if (map === null || observer.hash() !== map.hash()) return false
  for (let partition = 0; partition < map.partitions; partition += 1) {
    const { serving: _, ...seen } = observer.partition(partition)
    const { serving: __, ...held } = map.view(partition)
    assert.deepEqual(seen, held)
  }
  assert.equal(observer.members().length, mirror.state.members.size)
  return true
}

async function until(world: World, condition: () => boolean, limitMs: number, what: string) {
  assert.ok(await world.clock.runUntil(condition, { limitMs }), `not within ${limitMs} ms: ${what}`)
}

function throws(code: TenureErrorCode) {
  return (error: unknown) => isTenureError(error, code)
}

test('observer: has nothing before its first map, then answers owners from memory', async () => {
  const world = createWorld()
  const { observer } = world.observe('o')
  assert.equal(observer.owner('customer-17'), null)
  assert.equal(observer.ageMs(), Number.POSITIVE_INFINITY)
  assert.equal(observer.stale, true)
  assert.throws(() => observer.partition(0), throws('unknown-partition'))
  world.truth.join(1)
  for (let partition = 0; partition < 16; partition += 1) world.truth.grant(partition, 1)
  const serve = world.serve('a')
  serve.publisher.setLeader(true)
  await world.clock.run(observer.ready)
  await until(world, () => observer.status === 'following', 5000, 'following')
  const owner = observer.owner('customer-17')
  assert.ok(owner !== null)
  assert.deepEqual(owner, {
    partition: owner.partition,
    member: 'orders-1',
    session: serve.mirror.state.members.values().next().value?.session,
    address: '10.0.0.1:8080',
    incarnation: INCARNATION,
    generation: 1,
    serving: false,
    phase: 'owned',
  })
  assert.deepEqual(observer.version, { incarnation: INCARNATION, revision: world.truth.revision })
  assert.equal(observer.stale, false)
  assert.throws(() => observer.partition(16), throws('unknown-partition'))
})

test('observer: follows changes by deltas alone, one per batch, and tells its listeners', async () => {
  const world = createWorld()
  world.truth.join(1)
  world.truth.join(2)
  const serve = world.serve('a')
  serve.publisher.setLeader(true)
  const { observer } = world.observe('o')
  await world.clock.run(observer.ready)
  const told: (readonly number[])[] = []
  observer.onChange((change) => told.push(change.partitions))
  for (let round = 0; round < 5; round += 1) {
    world.truth.grant(3, 1)
    world.truth.grant(4, 2)
    world.truth.revoke(3, 2)
    serve.mirror.catchUp()
    await world.clock.advance(20)
    assert.equal(observer.partition(3).phase, 'revoking')
    assert.ok(equals(observer, serve))
  }
  assert.deepEqual(told, new Array(5).fill([3, 4]))
  const published = world.telemetry.events.filter((event) => event.type === 'map-published')
  assert.equal(published.length, 5)
  const { snapshots, requests, gaps, deltas } = observer.counters
  assert.deepEqual(
    { snapshots, requests, gaps, deltas },
    {
      ...{ snapshots: 1, requests: 1, gaps: 0, deltas: 5 },
    },
  )
})

test('observer: changes missed while NATS was down, one snapshot within 3 s of its return', async () => {
  const world = createWorld(1024)
  world.truth.join(1)
  world.truth.join(2)
  const serve = world.serve('a')
  const other = world.serve('b')
  serve.publisher.setLeader(true)
  const observers = ['o1', 'o2', 'o3'].map((name) => world.observe(name).observer)
  await until(world, () => observers.every((o) => o.status === 'following'), 5000, 'start')
  const before = observers.map((observer) => observer.counters.snapshots)
  world.nats.stop()
  await world.clock.advance(1000)
  for (let move = 0; move < 50; move += 1) {
    world.truth.grant(move, 1 + (move % 2))
    serve.mirror.catchUp()
    other.mirror.catchUp()
    await world.clock.advance(100)
  }
  const first = observers[0] as Observer
  assert.equal(first.status, 'offline')
  assert.ok(first.ageMs() >= 5900 && first.ageMs() <= 7100, `${first.ageMs()}`)
  assert.equal(first.stale, true)
  world.nats.start()
  await until(world, () => observers.every((o) => equals(o, serve)), 3000, 'all equal')
  await world.clock.advance(10_000)
  observers.forEach((observer, index) => {
    assert.equal(observer.counters.snapshots - (before[index] ?? 0), 1)
    assert.equal(observer.stale, false)
  })
})

test('observer: NATS was down and nothing changed, no gap and at most one snapshot', async () => {
  const world = createWorld()
  const serve = world.serve('a')
  serve.publisher.setLeader(true)
  const { observer } = world.observe('o')
  await until(world, () => observer.status === 'following', 5000, 'start')
  world.nats.stop()
  await world.clock.advance(5000)
  // Digests come each second and requests within half a second, so the digest need not be first.
  const before = observer.counters.snapshots
  world.nats.start()
  await until(world, () => observer.status === 'following', 3000, 'following again')
  assert.ok(observer.counters.snapshots - before <= 1)
  assert.equal(observer.counters.gaps, 0)
})

test('observer: a lost delta shows as a gap at the next one, or by the digest when none follows', async () => {
  for (const next of ['delta', 'digest']) {
    const world = createWorld()
    world.truth.join(1)
    const serve = world.serve('a')
    serve.publisher.setLeader(true)
    const { observer, broadcast } = world.observe('o')
    await until(world, () => observer.status === 'following', 5000, 'start')
    broadcast.faults.loseDeliveredChance = 1
    world.truth.grant(3, 1)
    serve.mirror.catchUp()
    await world.clock.advance(20)
    broadcast.faults.loseDeliveredChance = 0
    assert.equal(observer.partition(3).generation, 0)
    if (next === 'delta') {
      world.truth.grant(4, 1)
      serve.mirror.catchUp()
      await world.clock.advance(20)
      assert.equal(observer.counters.gaps, 1)
      assert.equal(observer.partition(4).generation, 1)
    }
    await until(world, () => equals(observer, serve), 2500, `healed by ${next}`)
    assert.equal(observer.counters.snapshots, 2)
    const resynced = world.telemetry.events.filter((event) => event.type === 'map-resynced')
    assert.equal(resynced.length, 2)
  }
})

test('observer: two rebalancers at once, one of them behind, converge without going back', async () => {
  const world = createWorld()
  world.truth.join(1)
  world.truth.join(2)
  const [old, fresh] = [world.serve('old'), world.serve('fresh')]
  old.publisher.setLeader(true)
  fresh.publisher.setLeader(true)
  const { observer } = world.observe('o')
  await until(world, () => observer.status === 'following', 5000, 'start')
  let revision = 0
  for (let round = 0; round < 40; round += 1) {
    world.truth.grant(round % 16, 1 + (round % 2))
    fresh.mirror.catchUp()
    if (round % 3 === 0) old.mirror.catchUp(world.truth.revision - 5)
    await world.clock.advance(100)
    assert.ok(observer.version.revision >= revision)
    revision = observer.version.revision
    assert.ok(equals(observer, fresh))
  }
  assert.equal(observer.counters.gaps, 0)
  assert.equal(observer.counters.snapshots, 1)
  old.publisher.setLeader(false)
  fresh.publisher.setLeader(false)
  old.mirror.catchUp()
  old.publisher.setLeader(true)
  world.truth.grant(1, 1)
  old.mirror.catchUp()
  await world.clock.advance(50)
  assert.ok(equals(observer, old))
  assert.equal(observer.counters.snapshots, 1)
})

test('observer: no rebalancer, the map is kept fresh by snapshots, less and less often', async () => {
  const world = createWorld()
  world.truth.join(1)
  const serve = world.serve('a')
  const { observer } = world.observe('o')
  await world.clock.run(observer.ready)
  world.truth.grant(3, 1)
  serve.mirror.catchUp()
  await until(world, () => equals(observer, serve), 5000, 'equal without digests')
  await world.clock.advance(120_000)
  assert.ok(observer.counters.snapshots <= 9, `${observer.counters.snapshots} snapshots`)
  assert.ok(observer.ageMs() <= 30_600)
})

test('observer: nobody publishes any more, silence is reported as age', async () => {
  const world = createWorld()
  const serve = world.serve('a')
  serve.publisher.setLeader(true)
  const { observer } = world.observe('o')
  await until(world, () => observer.status === 'following', 5000, 'start')
  await serve.broadcast.close()
  serve.publisher.close()
  await world.clock.advance(20_000)
  assert.ok(observer.ageMs() >= 19_000)
  assert.equal(observer.stale, true)
  assert.ok(observer.counters.requests <= 10, `${observer.counters.requests} requests`)
})

test('observer: a publisher whose own copy of etcd is old says so', async () => {
  const world = createWorld()
  const serve = world.serve('a', () => 9000)
  serve.publisher.setLeader(true)
  const { observer } = world.observe('o')
  await until(world, () => observer.status === 'following', 5000, 'start')
  assert.ok(observer.ageMs() >= 9000)
  assert.equal(observer.stale, true)
})

test('observer: the incarnation rises, the map is replaced and its version goes on', async () => {
  const world = createWorld()
  world.truth.join(1)
  world.truth.grant(3, 1)
  const serve = world.serve('a')
  serve.publisher.setLeader(true)
  const { observer } = world.observe('o')
  await until(world, () => observer.status === 'following', 5000, 'start')
  world.truth.raiseIncarnation()
  serve.mirror.catchUp()
  world.truth.grant(4, 1)
  serve.mirror.catchUp()
  await until(world, () => observer.version.incarnation === INCARNATION + 1, 2000, 'raised')
  await until(world, () => equals(observer, serve), 2000, 'equal')
  assert.equal(observer.partition(3).incarnation, INCARNATION)
  assert.equal(observer.partition(4).incarnation, INCARNATION + 1)
  assert.equal(observer.counters.snapshots, 2)
})

test('observer: a delta larger than a message comes in parts, a snapshot in pieces', async () => {
  const world = createWorld(5000, { maxPayloadBytes: 4096 })
  world.truth.join(1)
  world.truth.join(2)
  const serve = world.serve('a')
  serve.publisher.setLeader(true)
  const { observer } = world.observe('o')
  await until(world, () => observer.status === 'following', 5000, 'start')
  for (let partition = 0; partition < 5000; partition += 1) {
    world.truth.grant(partition, 1 + ((partition * 7919) % 13 < 6 ? 0 : 1))
  }
  serve.mirror.catchUp()
  await until(world, () => equals(observer, serve), 200, 'equal by deltas')
  assert.ok(observer.counters.deltas > 1)
  assert.equal(observer.counters.snapshots, 1)
  const { observer: late } = world.observe('late')
  await until(world, () => late.status === 'following', 1000, 'late one')
  assert.ok(equals(late, serve))
})

test('observer: learned ahead of the watch, an entry is published at once and covered later', async () => {
  const world = createWorld()
  world.truth.join(1)
  const serve = world.serve('a')
  serve.publisher.setLeader(true)
  const { observer, broadcast } = world.observe('o')
  await until(world, () => observer.status === 'following', 5000, 'start')
  const at = world.truth.revision
  world.truth.grant(3, 1)
  world.truth.grant(4, 1)
  const ahead = world.truth.since(at + 1)
  broadcast.faults.loseDeliveredChance = 1
  serve.publisher.onChange(serve.mirror.state.apply(ahead, 0))
  await world.clock.advance(5)
  broadcast.faults.loseDeliveredChance = 0
  assert.equal(observer.version.revision, at)
  serve.mirror.catchUp()
  await world.clock.advance(20)
  assert.ok(equals(observer, serve))
  assert.deepEqual(observer.version.revision, at + 2)
  assert.equal(observer.counters.snapshots, 1)
})

test('observer: what members serve is seen, lost hints are repeated, snapshots tell it', async () => {
  const world = createWorld()
  world.truth.join(1)
  world.truth.grant(3, 1)
  world.truth.grant(4, 1)
  const serve = world.serve('a')
  serve.publisher.setLeader(true)
  const { observer, broadcast } = world.observe('o')
  await until(world, () => observer.status === 'following', 5000, 'start')
  const [record] = serve.mirror.state.members.values()
  assert.ok(record !== undefined)
  const { member, session } = record
  const hints = createServingHints({
    ...{ group: GROUP, member, session, clock: world.clock },
    broadcast: world.nats.connect('worker'),
    random: world.random.fork('worker'),
    movesUnderWay: () => 0,
  })
  await world.clock.advance(50)
  const position = { incarnation: INCARNATION, generation: 1 }
  hints.announce(3, position, true)
  await world.clock.advance(50)
  assert.equal(observer.partition(3).serving, true)
  assert.equal(observer.partition(4).serving, false)
  broadcast.faults.loseDeliveredChance = 1
  hints.announce(4, position, true)
  await world.clock.advance(50)
  broadcast.faults.loseDeliveredChance = 0
  assert.equal(observer.partition(4).serving, false)
  const { observer: late } = world.observe('late')
  await until(world, () => late.status === 'following', 1000, 'late one')
  assert.equal(late.partition(4).serving, true)
  await until(world, () => observer.partition(4).serving, 11_000, 'repeated')
  hints.announce(3, position, false)
  await world.clock.advance(50)
  assert.equal(observer.partition(3).serving, false)
  world.nats.stop()
  await world.clock.advance(100)
  hints.announce(3, position, true)
  world.nats.start()
  await until(world, () => observer.partition(3).serving, 3000, 'announced after the return')
  hints.close()
})

test('observer: closed before its first map, ready rejects and nothing stays behind', async () => {
  const world = createWorld()
  const { observer } = world.observe('o')
  observer.close()
  await assert.rejects(observer.ready, throws('stopped'))
})

test('observer: after random loss and outages it is equal within 3 s of the return of NATS', async () => {
  const world = createWorld(64)
  const random = world.random.fork('faults')
  world.truth.join(1)
  world.truth.join(2)
  const serves = [world.serve('a'), world.serve('b')]
  const [first, second] = serves as [Serve, Serve]
  first.publisher.setLeader(true)
  const watchers = ['o1', 'o2'].map((name) => world.observe(name))
  for (let round = 0; round < 30; round += 1) {
    for (const { broadcast } of [...watchers, ...serves]) {
      broadcast.faults.loseDeliveredChance = random.fraction() < 0.5 ? 0.3 : 0
      broadcast.faults.losePublishedChance = random.fraction() < 0.5 ? 0.3 : 0
    }
    const downFrom = Math.floor(random.fraction() * 10)
    if (random.fraction() < 0.3) {
      first.publisher.setLeader(random.fraction() < 0.5)
      second.publisher.setLeader(random.fraction() < 0.5)
    }
    for (let step = 0; step < 10; step += 1) {
      if (step === downFrom) world.nats.stop()
      const member = 1 + Math.floor(random.fraction() * 2)
      if (random.fraction() < 0.05) {
        world.truth.leave(member)
        world.truth.join(member)
      }
      world.truth.grant(Math.floor(random.fraction() * 64), member)
      if (random.fraction() < 0.7) first.mirror.catchUp()
      if (random.fraction() < 0.7) second.mirror.catchUp()
      await world.clock.advance(random.fraction() * 200)
    }
    world.nats.start()
    for (const { broadcast } of [...watchers, ...serves]) {
      broadcast.faults.loseDeliveredChance = 0
      broadcast.faults.losePublishedChance = 0
    }
    first.publisher.setLeader(true)
    first.mirror.catchUp()
    second.mirror.catchUp()
    for (const { observer } of watchers) {
      await until(world, () => equals(observer, first), 3000, `round ${round}`)
    }
  }
})
