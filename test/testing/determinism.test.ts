/**
 * Plan: a small world in which everything that can be random is, run by a few clients that react to
 * what they hear. Two runs of one seed must write the same trace to the last step, time included.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createMemoryEtcd,
  createMemoryNats,
  createSeededRandom,
  createVirtualClock,
  type MemoryBroadcast,
  type MemoryStore,
  type SeededRandom,
  type VirtualClock,
} from '../../src/testing/index.ts'

const CALL = { timeoutMs: 300 }

type Trace = { add(line: string): void }

async function traceOf(seed: number): Promise<readonly string[]> {
  const clock = createVirtualClock()
  const random = createSeededRandom(seed)
  const lines: string[] = []
  const trace: Trace = { add: (line) => lines.push(`${clock.monotonicMs()} ${line}`) }
  const etcd = createMemoryEtcd({ clock, random: random.fork('etcd') })
  const nats = createMemoryNats({ clock, random: random.fork('nats') })
  etcd.onChange((change) => trace.add(`revision ${change.revision}`))
  const names = ['a', 'b', 'c']
  const processes = names.map((name) => {
    const process = clock.createProcess()
    const store = etcd.connect(name, { clock: process })
    const broadcast = nats.connect(name, { clock: process })
    misbehave(store, broadcast)
    void live(name, store, broadcast, random.fork(name), process, trace)
    return process
  })
  const chaos = random.fork('chaos')
  for (let round = 0; round < 40; round += 1) {
    const process = processes[chaos.integer(processes.length)]
    process?.pause()
    await clock.advance(chaos.integer(800))
    process?.resume()
    if (chaos.integer(4) === 0) etcd.changeLeader()
    if (chaos.integer(8) === 0) etcd.restart()
    if (chaos.integer(8) === 0) etcd.setAvailability('stuck')
    await clock.advance(chaos.integer(400))
    etcd.setAvailability('up')
  }
  return lines
}

function misbehave(store: MemoryStore, broadcast: MemoryBroadcast): void {
  Object.assign(store.faults, {
    requestDelay: { minMs: 0, maxMs: 40 },
    replyDelay: { minMs: 0, maxMs: 40 },
    watchDelay: { minMs: 0, maxMs: 200 },
    dropRequestChance: 0.05,
    loseReplyChance: 0.05,
    executeLateChance: 0.05,
    staleReadChance: 0.2,
    skipHistoryChance: 0.05,
  })
  Object.assign(broadcast.faults, {
    deliverDelay: { minMs: 0, maxMs: 100 },
    losePublishedChance: 0.1,
    loseDeliveredChance: 0.1,
  })
}

/** Writes keys under leases, tells the others, and notes all that it hears. */
async function live(
  name: string,
  store: MemoryStore,
  broadcast: MemoryBroadcast,
  random: SeededRandom,
  clock: Pick<VirtualClock, 'schedule'>,
  trace: Trace,
): Promise<void> {
  const watch = (): void => {
    store.watch('', 1, {
      events: (events) => trace.add(`${name} heard ${JSON.stringify(events)}`),
      progress: (revision) => trace.add(`${name} progress ${revision}`),
      ended: (end) => {
        trace.add(`${name} ${end.reason}`)
        clock.schedule(50, watch)
      },
    })
  }
  watch()
  broadcast.subscribe('news', (message) => trace.add(`${name} news ${message.data.join()}`))
  for (let round = 0; round < 60; round += 1) {
    const session = random.sessionId()
    const opened = await store.openLease(session, 2_000, CALL)
    const put = { type: 'put', key: `k${random.integer(4)}`, value: name, session } as const
    const done = await store.transact({ compare: [], success: [put], failure: [] }, CALL)
    const page = await store.list({ prefix: '', limit: 10 }, CALL)
    trace.add(`${name} ${JSON.stringify([opened, done, page])}`)
    broadcast.publish('news', new Uint8Array([round]))
  }
}

test('a world run twice from one seed takes the same steps at the same times', async () => {
  const [first, again, other] = [await traceOf(11), await traceOf(11), await traceOf(12)]
  assert.ok(first.length > 1_000, `${first.length} lines`)
  assert.deepEqual(again, first)
  assert.notDeepEqual(other, first)
  for (const sign of ['unknown-outcome', 'broken', 'news', 'progress', '"type":"delete"']) {
    assert.ok(
      first.some((line) => line.includes(sign)),
      `no ${sign} in the trace`,
    )
  }
})
