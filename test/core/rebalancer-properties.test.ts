/** The rebalancer over random groups: within its budget, one move per partition, to the assignor's target. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { assignGroup } from '../../src/core/group-assignment.ts'
import type { MemberName } from '../../src/core/ids.ts'
import { memberName } from '../../src/core/ids.ts'
import { spendBudget } from '../../src/core/rebalancer-budget.ts'
import { hashOrder } from './assignor-world.ts'
import { RebalancerWorld } from './rebalancer-world.ts'

const NAMES = ['a', 'b', 'c', 'd', 'e']

const anyGroup = fc.record({
  partitions: fc.integer({ min: 1, max: 40 }),
  owners: fc.array(fc.nat({ max: NAMES.length - 1 }), { minLength: 40, maxLength: 40 }),
  members: fc.integer({ min: 1, max: NAMES.length }),
  weights: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 5, maxLength: 5 }),
  movesInFlight: fc.integer({ min: 1, max: 12 }),
  movesInFlightPerMember: fc.integer({ min: 1, max: 8 }),
})

type Group = typeof anyGroup extends fc.Arbitrary<infer T> ? T : never

function build(group: Group): RebalancerWorld {
  const { partitions, movesInFlight, movesInFlightPerMember } = group
  const budget = { movesInFlight, movesInFlightPerMember }
  const world = new RebalancerWorld({ partitions, budget })
  const names = NAMES.slice(0, group.members)
  for (const [index, name] of names.entries())
    world.join(name, { weight: group.weights[index] ?? 1 })
  for (const partition of world.partitions()) {
    world.own(names[(group.owners[partition] ?? 0) % names.length] ?? 'a', partition)
  }
  return world
}

function assertWithinBudget(world: RebalancerWorld, group: Group): void {
  const perMember = new Map<string, number>()
  const revoking = world.revoking()
  assert.ok(revoking.length <= group.movesInFlight, 'moves in flight per group')
  for (const partition of revoking) {
    const record = world.state.record(partition)?.record
    if (record?.phase !== 'revoking') continue
    for (const name of new Set([record.owner.member, record.move.to ?? ''])) {
      perMember.set(name, (perMember.get(name) ?? 0) + 1)
    }
  }
  for (const count of perMember.values()) assert.ok(count <= group.movesInFlightPerMember)
}

test('any group converges to the assignor target, within budget, with exactly the needed moves', () => {
  fc.assert(
    fc.property(anyGroup, fc.infiniteStream(fc.nat()), (group, picks) => {
      const world = build(group)
      const needed = assignGroup(world.state, hashOrder).moves
      world.perform(world.elect())
      world.advance(1000)
      for (let round = 0; round < 500; round += 1) {
        assertWithinBudget(world, group)
        const revoking = world.revoking()
        if (revoking.length === 0 && world.wakeAtMs === null) break
        // Any one of them ends its drain next.
        const pick = picks.next().value ?? 0
        const partition = revoking[pick % Math.max(1, revoking.length)]
        if (partition !== undefined) world.drain(partition)
        else world.advance(1000)
        world.turn()
      }
      assert.deepEqual(world.revoking(), [])
      assert.deepEqual(assignGroup(world.state, hashOrder).moves, [])
      const made = world.log.filter(({ type }) => type === 'move-requested')
      assert.equal(made.length, needed.length, 'no needless move')
      const ended = world.log.filter((action) => action.type === 'move-ended')
      assert.ok(ended.every(({ outcome }) => outcome === 'moved'))
      assert.equal(ended.length, needed.length)
    }),
    { numRuns: 150 },
  )
})

/** The balance for the member that joins moves on a partition that is under way to another. */
const JOINED_DURING_A_MOVE: Group = {
  ...{ partitions: 20, members: 2, weights: [1, 3, 1, 1, 1] },
  owners: Array.from({ length: 40 }, (_, partition) => {
    if (partition === 8 || partition === 9) return 3
    return partition === 6 || partition === 17 ? 1 : 0
  }),
  ...{ movesInFlight: 7, movesInFlightPerMember: 7 },
}

test('any group converges although members die and join while moves are pending', () => {
  const happening = fc.record({
    at: fc.integer({ min: 0, max: 10 }),
    name: fc.constantFrom(...NAMES),
    dies: fc.boolean(),
  })
  fc.assert(
    fc.property(anyGroup, fc.array(happening, { maxLength: 4 }), (group, happenings) => {
      const world = build(group)
      world.perform(world.elect())
      for (let round = 0; round <= 10; round += 1) {
        world.advance(400)
        for (const { at, name, dies } of happenings) {
          if (at !== round) continue
          const isLive = world.state.members.has(memberName(name))
          if (dies && isLive && world.state.members.size > 1) world.die(name)
          else if (!dies && !isLive) world.join(name)
        }
        electVacant(world)
        world.turn()
        const [first] = world.revoking()
        if (first !== undefined) world.drain(first)
        electVacant(world)
      }
      world.converge()
      electVacant(world)
      world.converge()
      assert.deepEqual(assignGroup(world.state, hashOrder).moves, [])
      assert.ok(world.owners().every((owner) => owner !== null))
    }),
    { numRuns: 100, examples: [[JOINED_DURING_A_MOVE, [{ at: 6, name: 'd', dies: false }]]] },
  )
})

/** What members do by themselves: the assignor's choice wins each vacant partition. */
function electVacant(world: RebalancerWorld): void {
  for (const { partition, to } of assignGroup(world.state, hashOrder).vacancies) {
    world.own(to, partition)
  }
}

test('the limit per minute holds in any window of a minute, and everything moves in the end', () => {
  const world = new RebalancerWorld({ partitions: 60, budget: { movesPerMinute: 7 } })
  world.join('a')
  world.own('a', ...world.partitions())
  world.join('b')
  world.perform(world.elect())
  const asked: number[] = []
  for (let second = 0; second < 400; second += 1) {
    const before = world.log.length
    world.advance(1000)
    const moves = world.log.slice(before).filter(({ type }) => type === 'move-requested')
    for (const _ of moves) asked.push(world.nowMs)
    for (const partition of world.revoking()) world.drain(partition)
    world.turn()
  }
  assert.equal(asked.length, 30)
  for (const start of asked) {
    const inWindow = asked.filter((at) => at >= start && at < start + 59_000)
    assert.ok(inWindow.length <= 7)
  }
})

test('10,000 moves cost two requests per 120 moves at most, hand-overs included', () => {
  const world = new RebalancerWorld({ partitions: 10_000 })
  world.join('a')
  world.own('a', ...world.partitions())
  world.join('b')
  world.request({ type: 'drain', member: memberName('a') }, 'd1')
  world.perform(world.elect())
  let handOvers = 0
  for (let round = 0; round < 200 && world.counts()['a'] !== undefined; round += 1) {
    const revoking = world.revoking()
    handOvers += Math.ceil(revoking.length / 120)
    for (const partition of revoking) world.drain(partition)
    world.turn()
  }
  assert.deepEqual(world.counts(), { b: 10_000 })
  const most = (3 * 10_000) / 100 + 50
  assert.ok(world.requests + handOvers <= most - 100, `${world.requests} + ${handOvers} requests`)
})

test('a stuck drain, once overdue, no longer holds up the moves of others', () => {
  const budget = { movesInFlight: 2, movesInFlightPerMember: 2 }
  const world = new RebalancerWorld({ budget, drain: { deadlineMs: 1000 } })
  world.join('a')
  world.own('a', ...world.partitions())
  world.join('b')
  world.perform(world.elect())
  world.advance(1000)
  const stuck = world.revoking()
  assert.equal(stuck.length, 2)
  world.advance(999)
  assert.deepEqual(world.revoking(), stuck)
  world.advance(1)
  assert.equal(world.revoking().length, 4)
})

test('the budget, of many sources and one target, never exceeds the target and keeps the sequence', () => {
  const queue = Array.from({ length: 50 }, (_, partition) => ({
    partition,
    from: memberName(NAMES[partition % 4] ?? 'a'),
    to: memberName('e'),
    id: 'x',
    reason: 'balance' as const,
    by: 'test',
  }))
  const budget = { movesInFlight: 100, movesInFlightPerMember: 10, movesPerMinute: 0 }
  const inFlight = Array.from({ length: 5 }, () => ({
    from: memberName('a') as MemberName,
    to: memberName('e') as MemberName,
  }))
  const answer = spendBudget({ queue, inFlight, budget, released: [], nowMs: 0 })
  assert.deepEqual(
    answer.release.map(({ partition }) => partition),
    [0, 1, 2, 3, 4],
  )
  assert.equal(answer.rest.length, 45)
  const full = spendBudget({
    queue,
    inFlight: [...inFlight, ...inFlight],
    budget,
    released: [],
    nowMs: 0,
  })
  assert.deepEqual(full.release, [])
})
