/**
 * Plan: publishers and observers on a real nats-server, restarted while the map changes. What etcd holds
 * is played by the numbered changes of map-world.ts.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSystemClock } from '../../src/host/system-clock.ts'
import { createSystemRandom } from '../../src/host/system-random.ts'
import { createNatsBroadcast } from '../../src/nats/nats-broadcast.ts'
import { createMapPublisher } from '../../src/runtime/map-publisher.ts'
import { createObserver } from '../../src/runtime/observer.ts'
import type { Observer } from '../../src/runtime/observer-types.ts'
import type { Truth, TruthMirror } from '../runtime/map-world.ts'
import { createMirror, createRecorder, createTruth, GROUP } from '../runtime/map-world.ts'
import { eventually } from '../support/eventually.ts'
import type { CleanUp } from '../support/servers.ts'
import { startNats, temporaryFolder } from '../support/servers.ts'

const clock = createSystemClock()
const random = createSystemRandom()

async function serve(cleanUp: CleanUp, url: string, truth: Truth, publisherId: string) {
  const broadcast = await createNatsBroadcast({ servers: [url] })
  const mirror = createMirror(truth)
  mirror.catchUp()
  const { state } = mirror
  const telemetry = createRecorder()
  const publisher = createMapPublisher({
    ...{ group: GROUP, broadcast, clock, state, telemetry, publisherId },
  })
  mirror.publishers.push(publisher)
  cleanUp.after(() => {
    publisher.close()
    return broadcast.close()
  })
  return { publisher, mirror, broadcast }
}

async function observe(cleanUp: CleanUp, url: string): Promise<Observer> {
  const broadcast = await createNatsBroadcast({ servers: [url] })
  const observer = createObserver({ group: GROUP, broadcast, clock, random })
  cleanUp.after(() => {
    observer.close()
    return broadcast.close()
  })
  return observer
}

/** Entry by entry the records and members that the mirror holds, at the mirror's revision. */
function equals(observer: Observer, { state }: TruthMirror): boolean {
  if (observer.version.revision !== state.revision) return false
  for (let partition = 0; partition < state.partitions; partition += 1) {
    const record = state.record(partition)?.record ?? null
    const seen = observer.partition(partition)
    assert.equal(seen.generation, record?.generation ?? 0)
    assert.equal(seen.phase, record?.phase ?? 'vacant')
    const live = state.liveOwner(partition)
    assert.equal(seen.owner?.live ? seen.owner.session : undefined, live?.session)
    assert.equal(seen.owner?.live ? seen.owner.member : undefined, live?.member)
  }
  const members = [...state.members.values()].map(({ member, session, address, zone }) => ({
    ...{ member, session, address, zone },
  }))
  members.sort((a, b) => (a.member < b.member ? -1 : 1))
  assert.deepEqual(observer.members(), members)
  return true
}

test('observers on NATS: fifty moves while it is down, equal within 3 s and one snapshot of its return', async (t) => {
  const server = await startNats(t)
  const truth = createTruth(1024)
  for (const member of [1, 2, 3]) truth.join(member)
  for (let partition = 0; partition < 1024; partition += 1)
    truth.grant(partition, 1 + (partition % 3))
  const leader = await serve(t, server.url, truth, 'leader')
  const other = await serve(t, server.url, truth, 'other')
  leader.publisher.setLeader(true)
  const observers = await Promise.all([1, 2, 3, 4].map(() => observe(t, server.url)))
  await Promise.all(observers.map((observer) => observer.ready))
  const start = { timeoutMs: 5000, what: 'equal at the start' }
  await eventually(() => observers.every((observer) => equals(observer, leader.mirror)), start)

  await server.kill()
  const down = { timeoutMs: 5000, what: 'offline' }
  await eventually(() => observers.every(({ status }) => status === 'offline'), down)
  const before = observers.map(({ counters }) => counters.snapshots)
  for (let move = 0; move < 50; move += 1) {
    truth.revoke(move, 3)
    truth.grant(move, 3)
    if (move === 25) truth.leave(2)
    leader.mirror.catchUp()
    other.mirror.catchUp()
  }
  const ages = observers.map((observer) => observer.ageMs())
  const older = () => observers.every((observer, index) => observer.ageMs() > (ages[index] ?? 0))
  await eventually(older, { timeoutMs: 1000, what: 'older' })

  await server.restart()
  const back = { timeoutMs: 3000, what: 'equal after the return' }
  await eventually(() => observers.every((observer) => equals(observer, leader.mirror)), back)
  observers.forEach((observer, index) => {
    assert.ok(observer.counters.snapshots - (before[index] ?? 0) <= 1)
    assert.ok(!observer.stale)
  })
  truth.grant(7, 1)
  leader.mirror.catchUp()
  const after = { timeoutMs: 1000, what: 'equal by a delta' }
  await eventually(() => observers.every((observer) => equals(observer, leader.mirror)), after)
})

test('observers on NATS: the rebalancer changes, the old one goes on, all converge', async (t) => {
  const server = await startNats(t)
  const truth = createTruth(64)
  truth.join(1)
  truth.join(2)
  const old = await serve(t, server.url, truth, 'old')
  const fresh = await serve(t, server.url, truth, 'fresh')
  old.publisher.setLeader(true)
  const observer = await observe(t, server.url)
  await observer.ready
  fresh.publisher.setLeader(true)
  for (let move = 0; move < 200; move += 1) {
    truth.grant(move % 64, 1 + (move % 2))
    fresh.mirror.catchUp()
    if (move % 7 === 0) old.mirror.catchUp(truth.revision - 3)
  }
  const what = { timeoutMs: 3000, what: 'equal to the new one' }
  await eventually(() => equals(observer, fresh.mirror), what)
  old.mirror.catchUp()
  fresh.publisher.setLeader(false)
  truth.grant(5, 2)
  old.mirror.catchUp()
  await eventually(() => equals(observer, old.mirror), {
    timeoutMs: 3000,
    what: 'equal to the old',
  })
  assert.ok(observer.counters.snapshots <= 2)
})

test('observers on NATS: 10,000 partitions granted at once and a small message size', async (t) => {
  const folder = await temporaryFolder(t)
  writeFileSync(join(folder, 'nats.conf'), 'max_payload: 16384\n')
  const server = await startNats(t, { extraArgs: ['-c', join(folder, 'nats.conf')] })
  const truth = createTruth(10_000)
  for (let member = 1; member <= 10; member += 1) truth.join(member)
  const leader = await serve(t, server.url, truth, 'leader')
  leader.publisher.setLeader(true)
  assert.equal(leader.broadcast.maxPayloadBytes(), 16_384)
  const observer = await observe(t, server.url)
  await observer.ready
  for (let partition = 0; partition < 10_000; partition += 1) {
    truth.grant(partition, 1 + ((partition * 7919) % 10))
  }
  leader.mirror.catchUp()
  await eventually(() => equals(observer, leader.mirror), { timeoutMs: 3000, what: 'equal' })
  const late = await observe(t, server.url)
  await late.ready
  await eventually(() => equals(late, leader.mirror), { timeoutMs: 3000, what: 'equal, late' })
})
