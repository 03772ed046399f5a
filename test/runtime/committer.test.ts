/** Plan: commits and confirming reads over the in-memory etcd: batching, outcomes, unknown ones included. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Commit } from '../../src/core/commit.ts'
import { elect } from '../../src/core/commit.ts'
import { COMMITS_PER_BATCH_MAX } from '../../src/core/commit-batch.ts'
import type { OperationId } from '../../src/core/ids.ts'
import { BATCHES_IN_FLIGHT_MAX, Committer } from '../../src/runtime/committer.ts'
import {
  createMemoryEtcd,
  createSeededRandom,
  createVirtualClock,
} from '../../src/testing/index.ts'
import { after, ME } from '../core/ownership-cases.ts'
import { KEYS } from './mirror-world.ts'

const CALL = { timeoutMs: 1_000 }

async function createCommitterWorld() {
  const clock = createVirtualClock()
  const random = createSeededRandom(1)
  const etcd = createMemoryEtcd({ clock, random: random.fork('etcd') })
  const store = etcd.connect('tested')
  const committer = new Committer({ store, keys: KEYS, clock, timeoutMs: 2_000 })
  const key = KEYS.member(ME.member)
  await clock.run(store.openLease(ME.session, 600_000, CALL))
  const member = { type: 'put', key, value: '{}', session: ME.session } as const
  const incarnation = { type: 'put', key: KEYS.incarnation, value: '1' } as const
  await clock.run(
    store.transact({ compare: [], success: [member, incarnation], failure: [] }, CALL),
  )
  const before = store.calls.transact
  return {
    clock,
    etcd,
    store,
    committer,
    requests: () => store.calls.transact - before,
    /** Types of the replies, in the order in which they came. */
    send: async (commits: readonly Commit[]) => {
      const replies: string[] = []
      for (const commit of commits) {
        committer.commit(commit, (reply) => void replies.push(reply.type))
      }
      assert.deepEqual(replies, [], 'a reply came synchronously')
      const all = () => replies.length === commits.length
      assert.ok(await clock.runUntil(all, { limitMs: 10_000 }))
      assert.equal(committer.pending, 0)
      return replies
    },
  }
}

function campaign(partition: number, operation = `op-${partition}`): Commit {
  return elect(partition, null, ME, 1, { operation: operation as OperationId, atMs: 0 })
}

function campaigns(count: number): readonly Commit[] {
  return Array.from({ length: count }, (_, partition) => campaign(partition))
}

test('committer, commits of one turn, share as few requests as etcd allows', async () => {
  const world = await createCommitterWorld()
  const count = COMMITS_PER_BATCH_MAX * 2 + 1
  const replies = await world.send(campaigns(count))
  assert.deepEqual([new Set(replies), world.requests()], [new Set(['done']), 3])
  assert.equal(world.etcd.entries(`${KEYS.prefix}partitions/`).length, count)
})

test('committer, more than may be in flight, sends the rest as replies come in', async () => {
  const world = await createCommitterWorld()
  const count = COMMITS_PER_BATCH_MAX * (BATCHES_IN_FLIGHT_MAX + 4)
  const replies = await world.send(campaigns(count))
  assert.equal(replies.length, count)
  assert.equal(world.requests(), BATCHES_IN_FLIGHT_MAX + 4)
})

test('committer, lost race, refuses that commit alone and shows what stands', async () => {
  const world = await createCommitterWorld()
  await world.send([campaign(1, 'first')])
  const replies: unknown[] = []
  for (const commit of [campaign(1, 'second'), campaign(2)]) {
    world.committer.commit(commit, (reply) => {
      replies.push(reply.type === 'refused' ? reply.stands : reply.type)
    })
  }
  await world.clock.advance(1_000)
  assert.deepEqual(replies, [after(campaign(1, 'first')), 'done'])
})

test('committer, two commits of one partition, never share a request', async () => {
  const world = await createCommitterWorld()
  const replies = await world.send([campaign(1, 'first'), campaign(1, 'second'), campaign(2)])
  assert.deepEqual(replies.toSorted(), ['done', 'done', 'refused'])
  assert.equal(world.requests(), 2)
})

test('committer, shared requirement failed, names it to all', async () => {
  const world = await createCommitterWorld()
  world.etcd.revokeLease(ME.session)
  const failed: unknown[] = []
  for (const commit of campaigns(2)) {
    world.committer.commit(commit, (reply) => {
      failed.push(reply.type === 'refused-all' ? reply.failed : reply.type)
    })
  }
  await world.clock.advance(1_000)
  const alive = [{ type: 'session-alive', ...ME }]
  assert.deepEqual(failed, [alive, alive])
})

test('committer, reply lost or late, tells an unknown outcome, and a read shows the rest', async () => {
  for (const fault of ['lose-reply', 'drop-request', 'execute-late'] as const) {
    const world = await createCommitterWorld()
    world.store.failNext(fault, 'transact')
    assert.deepEqual(await world.send(campaigns(2)), ['unknown', 'unknown'])
    await world.clock.advance(10_000)
    const found: unknown[] = []
    world.committer.confirm(0, (reply) => void found.push(reply.ok && reply.stored))
    await world.clock.advance(1_000)
    const expected: unknown = fault === 'drop-request' ? null : after(campaign(0))
    assert.deepEqual(found, [expected])
  }
})

test('committer, answers that come too late, has one request under way, and more with each in time', async () => {
  const world = await createCommitterWorld()
  for (let call = 0; call < BATCHES_IN_FLIGHT_MAX; call += 1) {
    world.store.failNext('lose-reply', 'transact')
  }
  const first = await world.send(campaigns(COMMITS_PER_BATCH_MAX * BATCHES_IN_FLIGHT_MAX))
  assert.deepEqual(new Set(first), new Set(['unknown']))
  const underWay: number[] = []
  for (const batches of [2, 8]) {
    const before = world.requests()
    const from = 10_000 * batches
    for (let place = 0; place < COMMITS_PER_BATCH_MAX * batches; place += 1) {
      world.committer.commit(campaign(from + place), () => {})
    }
    await world.clock.advance(0.1)
    underWay.push(world.requests() - before)
    await world.clock.advance(1_000)
    assert.equal(world.requests() - before, batches)
  }
  assert.deepEqual(underWay, [1, 3])
})

test('committer, few commits beside a request, wait for its answer, or a while, and go together', async () => {
  const world = await createCommitterWorld()
  await world.send(campaigns(1))
  const sentAfter = async (partitions: readonly number[], ms: number) => {
    const before = world.requests()
    for (const partition of partitions) world.committer.commit(campaign(partition), () => {})
    await world.clock.advance(ms)
    return world.requests() - before
  }
  // Nothing is under way, and a turn of the event loop is all that it takes.
  assert.equal(await sentAfter([1], 0.1), 1)
  assert.deepEqual([await sentAfter([2], 0.1), await sentAfter([3], 0.1)], [0, 0])
  assert.equal(await sentAfter([], 1_000), 1, 'with the answer')
  world.store.failNext('lose-reply', 'transact')
  assert.equal(await sentAfter([4], 0.1), 1)
  assert.equal(await sentAfter([5], 99), 0)
  assert.equal(await sentAfter([], 2), 1, 'without an answer')
  const many = Array.from({ length: COMMITS_PER_BATCH_MAX / 2 }, (_, place) => 100 + place)
  assert.equal(await sentAfter(many, 0.1), 1, 'half a batch')
})

test('committer, request that never left, is told apart', async () => {
  const world = await createCommitterWorld()
  world.store.failNext('not-executed', 'transact')
  assert.deepEqual(await world.send(campaigns(1)), ['not-executed'])
})

test('committer, confirming reads, share a request, write nothing and fail as one', async () => {
  const world = await createCommitterWorld()
  await world.send(campaigns(1))
  const revision = world.etcd.revision()
  const before = world.requests()
  const found: unknown[] = []
  for (const partition of [0, 1, 0]) {
    world.committer.confirm(partition, (reply) => void found.push(reply.ok && reply.stored))
  }
  await world.clock.advance(1_000)
  assert.deepEqual(found, [after(campaign(0)), null, after(campaign(0))])
  assert.deepEqual([world.requests() - before, world.etcd.revision()], [1, revision])
  const failed: boolean[] = []
  world.store.failNext('lose-reply', 'transact')
  for (const partition of [0, 1]) {
    world.committer.confirm(partition, (reply) => void failed.push(!reply.ok))
  }
  await world.clock.advance(5_000)
  assert.deepEqual(failed, [true, true])
})
