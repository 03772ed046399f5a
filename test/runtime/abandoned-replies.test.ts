/**
 * Plan: a worker on the in-memory etcd whose hand-over is still on its way when the partition is forced away
 * and then granted back to it. The reply to that hand-over is the first to show the new grant.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Commit, StoredRecord } from '../../src/core/commit.ts'
import { force, handOver, revoke } from '../../src/core/commit.ts'
import { groupName, memberName } from '../../src/core/ids.ts'
import { decodePartitionRecord } from '../../src/core/partition-record.ts'
import { createWorker } from '../../src/runtime/create-worker.ts'
import { createMemoryNats } from '../../src/testing/index.ts'
import { KEYS, ServedGroupWorld } from './served-group-world.ts'

const CALL = { timeoutMs: 1000 }

test('a grant that the reply to an abandoned hand-over shows first is taken up', async () => {
  const settle = { firstGrantMs: 0, balanceMs: 100 }
  const world = new ServedGroupWorld({ partitions: 1, fenced: true, settle })
  const clock = world.clock.createProcess()
  const nats = createMemoryNats({ clock: world.clock, random: world.random.fork('nats') })
  const store = world.etcd.connect('a', { clock })
  const worker = await world.clock.run(
    createWorker<void>({
      ...{ group: groupName('orders'), member: memberName('a'), keys: KEYS, clock, store },
      broadcast: nats.connect('a', { clock }),
      random: world.random.fork('a'),
      telemetry: { record: () => {} },
      orderOf: world.orderOf,
      settings: world.settings,
      close: async () => {},
    }),
  )
  const held = () => worker.partitions()[0]
  const serves = (generation: number) =>
    held()?.status === 'serving' && held()?.token.generation === generation
  await world.until(() => serves(1), 'a serves')
  const b = await world.member('b')
  b.self.isStuck = true
  const operator = world.etcd.connect('operator')
  const stands = (): StoredRecord => {
    const raw = world.etcd.entries(`${KEYS.prefix}partitions/`)[0]?.value ?? ''
    return { raw, record: decodePartitionRecord(raw, 0) }
  }
  const write = async ({ value }: Commit) => {
    const put = { type: 'put', key: KEYS.partition(0), value } as const
    await world.clock.run(operator.transact({ compare: [], success: [put], failure: [] }, CALL))
  }
  const stamp = () => ({ operation: world.random.operationId(), atMs: 0 })
  const first = stands()
  assert.ok(first.record.phase === 'owned')
  const a = first.record.owner
  const { incarnation } = first.record
  const me = { member: b.member, session: b.session }

  store.faults.requestDelay = { minMs: 1500, maxMs: 1500 }
  const move = {
    id: 'm',
    to: b.member,
    reason: 'operator',
    by: 'ann',
    rewrites: 0,
    atMs: 0,
  } as const
  await write(revoke(0, { ...first, record: first.record }, move, b.session, stamp()))
  await world.until(() => held()?.status !== 'serving', 'a drains, its hand-over is on its way')
  const by = { type: 'rebalancer', session: b.session } as const
  await write(force(0, stands(), me, incarnation, by, stamp()))
  await world.clock.advance(10)
  store.faults.watchDelay = { minMs: 4000, maxMs: 4000 }
  await write(handOver(0, stands(), a, incarnation, stamp()))

  await world.until(() => serves(3), 'a serves what was granted to it', 12_000)
})
