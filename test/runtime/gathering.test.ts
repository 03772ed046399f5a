/** Plan: a publisher and a member's hints while few and while many partitions move: how many messages, how late. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatherMs } from '../../src/core/gathering.ts'
import { memberName, sessionId } from '../../src/core/ids.ts'
import { mapSubjects } from '../../src/core/map-wire.ts'
import { createMapPublisher } from '../../src/runtime/map-publisher.ts'
import { createServingHints } from '../../src/runtime/serving-hints.ts'
import {
  createMemoryNats,
  createSeededRandom,
  createVirtualClock,
} from '../../src/testing/index.ts'
import { createMirror, createRecorder, createTruth, GROUP, INCARNATION } from './map-world.ts'

const PARTITIONS = 2000

function createWorld() {
  const clock = createVirtualClock()
  const random = createSeededRandom(3)
  const nats = createMemoryNats({ clock, random: random.fork('nats') })
  const truth = createTruth(PARTITIONS)
  const mirror = createMirror(truth)
  const heard = { delta: 0, serving: 0 }
  const listener = nats.connect('listener')
  listener.subscribe(mapSubjects(GROUP).delta, () => {
    heard.delta += 1
  })
  listener.subscribe(mapSubjects(GROUP).serving, () => {
    heard.serving += 1
  })
  truth.join(1)
  truth.join(2)
  for (let partition = 0; partition < PARTITIONS; partition += 1) truth.grant(partition, 1)
  mirror.catchUp()
  const publisher = createMapPublisher({
    ...{ group: GROUP, clock, state: mirror.state, telemetry: createRecorder() },
    ...{ broadcast: nats.connect('serve'), publisherId: 'serve' },
  })
  mirror.publishers.push(publisher)
  publisher.setLeader(true)
  const hints = createServingHints({
    ...{ group: GROUP, member: memberName('orders-1'), session: sessionId('00000000000003e9') },
    ...{ clock, random: random.fork('hints'), broadcast: nats.connect('worker') },
    movesUnderWay: () => mirror.state.revoking,
  })
  /** Each of ten grants a millisecond after the other, told by the map and by its member. */
  const tenGrants = async () => {
    heard.delta = 0
    heard.serving = 0
    for (let partition = 0; partition < 10; partition += 1) {
      truth.grant(partition, 2)
      mirror.catchUp()
      hints.announce(partition, { incarnation: INCARNATION, generation: 2 }, true)
      await clock.advance(1)
    }
    await clock.advance(100)
    return { ...heard }
  }
  return { truth, mirror, publisher, tenGrants }
}

test('gathering, of a group at rest, is none, and never more than some hundredths of a second', () => {
  assert.deepEqual(
    [0, 10, 500, 100_000].map((moves) => gatherMs(moves)),
    [0, 0, 10, 25],
  )
})

test('gathering, few partitions move, each change is told of at once', async () => {
  const { truth, mirror, tenGrants } = createWorld()
  truth.revoke(PARTITIONS - 1, 2)
  mirror.catchUp()
  const { delta, serving } = await tenGrants()
  assert.equal(delta, 10)
  assert.ok(serving <= 3, `${serving} hints`)
})

test('gathering, many partitions move, changes are told of together and none is left out', async () => {
  const { truth, mirror, publisher, tenGrants } = createWorld()
  for (let partition = 10; partition < PARTITIONS; partition += 1) truth.revoke(partition, 2)
  mirror.catchUp()
  assert.equal(mirror.state.revoking, PARTITIONS - 10)
  const { delta, serving } = await tenGrants()
  assert.ok(delta <= 2, `${delta} deltas`)
  assert.equal(serving, 1)
  assert.equal(publisher.map()?.view(9).generation, 2)
  for (let partition = 10; partition < PARTITIONS; partition += 1) truth.grant(partition, 2)
  mirror.catchUp()
  assert.equal(mirror.state.revoking, 0)
})
