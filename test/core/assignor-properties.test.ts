/**
 * Plan: random groups, balanced or not, with weights, capacities, cordons, leavers and exclusions; each
 * promise of the assignor as one property, the fewest moves against an oracle that tries everything.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Assignment, AssignmentInput } from '../../src/core/assignor.ts'
import { assign } from '../../src/core/assignor.ts'
import type { MemberName } from '../../src/core/ids.ts'
import { memberName } from '../../src/core/ids.ts'
import {
  anySituation,
  equals,
  fewestMoves,
  hashOrder,
  roundings,
  shares,
  situation,
  tally,
} from './assignor-world.ts'

const ANY = anySituation({ weights: 4, isCapped: true })
const WEIGHED = anySituation({ weights: 4, isCapped: false })
const EQUAL = anySituation({ weights: 1, isCapped: false })

function countTargets({ targets }: Assignment, member: MemberName): number {
  return targets.filter((target) => target === member).length
}

function isLeaving(input: AssignmentInput, owner: MemberName): boolean {
  return !input.keeping.has(owner) && !input.members.some((entry) => entry.member === owner)
}

/** Equal members with every partition owned as the assignor itself would have it. */
function balanced(partitions: number, members: AssignmentInput['members']): AssignmentInput {
  const vacant = situation({ partitions, members })
  return { ...vacant, owners: assign(vacant).targets }
}

test('assignor, any group, gives each member its share rounded up or down', () => {
  fc.assert(
    fc.property(ANY, (input) => {
      const assignment = assign(input)
      const exact = shares(input)
      for (const { member, capacity, weight } of input.members) {
        const count = assignment.counts.get(member) ?? -1
        assert.ok(Math.abs(count - (exact.get(member) ?? 0)) < 1, `${member} gets ${count}`)
        assert.ok(count <= (capacity ?? Infinity))
        if (weight === 0) assert.equal(count, 0)
      }
      const sum = [...assignment.counts.values()].reduce((total, count) => total + count, 0)
      assert.ok(sum <= tally(input).available)
      const isRoomLeft = input.members.some(
        (entry) =>
          entry.weight > 0 &&
          (assignment.counts.get(entry.member) ?? 0) < (entry.capacity ?? Infinity),
      )
      if (isRoomLeft) assert.equal(sum, tally(input).available)
    }),
  )
})

test('assignor, no capacities, ends with counts that differ by at most one per unit of weight', () => {
  fc.assert(
    fc.property(WEIGHED, (input) => {
      const assignment = assign(input)
      const open = input.members.filter((entry) => entry.weight > 0)
      if (open.length === 0) return
      const loads = open.map((entry) => countTargets(assignment, entry.member) / entry.weight)
      assert.ok(Math.max(...loads) - Math.min(...loads) <= 1 + 1e-9, loads.join(' '))
      assert.deepEqual(assignment.unplaced, [])
      for (const { member } of input.members) {
        assert.equal(countTargets(assignment, member), assignment.counts.get(member))
      }
    }),
  )
})

test('assignor, every partition, is placed, kept, excluded or reported as unplaced', () => {
  fc.assert(
    fc.property(ANY, (input) => {
      const { targets, moves, vacancies, unplaced, counts } = assign(input)
      assert.equal(targets.length, input.partitions)
      const moved = new Map([...moves, ...vacancies].map(({ partition, to }) => [partition, to]))
      assert.equal(moved.size, moves.length + vacancies.length)
      const places = new Map(counts)
      for (let partition = 0; partition < input.partitions; partition += 1) {
        const owner = input.owners[partition] ?? null
        const target = targets[partition] ?? null
        if (input.excluded.has(partition)) assert.equal(target, null)
        else if (unplaced.includes(partition)) assert.equal(target, null)
        else assert.equal(target, moved.get(partition) ?? owner)
        if (target !== null) places.set(target, (places.get(target) ?? 0) - 1)
        if (unplaced.includes(partition)) assert.ok(owner === null || isLeaving(input, owner))
      }
      const isRoomLeft = input.members.some(({ member }) => (places.get(member) ?? 0) > 0)
      if (isRoomLeft) assert.deepEqual(unplaced, [])
    }),
  )
})

test('assignor, the same group told in another sequence, answers the same', () => {
  const shuffled = ANY.chain((input) =>
    fc
      .shuffledSubarray([...input.members], { minLength: input.members.length })
      .map((members) => ({ input, members })),
  )
  fc.assert(
    fc.property(shuffled, ({ input, members }) => {
      const keeping = new Set([...input.keeping].reverse())
      const excluded = new Set([...input.excluded].reverse())
      const order = hashOrder(members.map((entry) => entry.member))
      assert.deepEqual(assign({ ...input, members, keeping, excluded, order }), assign(input))
    }),
  )
})

test('assignor, any group, moves as little as the best rounding of shares allows', () => {
  fc.assert(
    fc.property(ANY, (input) => {
      const { moves } = assign(input)
      const balancing = moves.filter((move) => !isLeaving(input, move.from))
      assert.equal(balancing.length, fewestMoves(input, roundings(input)))
    }),
    { numRuns: 300 },
  )
})

test('assignor, equal members, moves as little as any distribution within one allows', () => {
  fc.assert(
    fc.property(EQUAL, (input) => {
      if (input.members.length === 0) return
      const { available } = tally(input)
      const names = input.members.map((entry) => entry.member)
      const low = Math.floor(available / names.length)
      const found: ReadonlyMap<MemberName, number>[] = []
      for (let choice = 0; choice < 2 ** names.length; choice += 1) {
        const counts = names.map((name, index) => [name, low + ((choice >> index) & 1)] as const)
        const sum = counts.reduce((total, [, count]) => total + count, 0)
        if (sum === available) found.push(new Map(counts))
      }
      const balancing = assign(input).moves.filter((move) => !isLeaving(input, move.from))
      assert.equal(balancing.length, fewestMoves(input, found))
    }),
    { numRuns: 300 },
  )
})

test('assignor, any group, takes only from who has too many and gives only to who has too few', () => {
  fc.assert(
    fc.property(ANY, (input) => {
      const { moves, vacancies, counts } = assign(input)
      const { held } = tally(input)
      for (const { from } of moves) {
        assert.ok(isLeaving(input, from) || (held.get(from) ?? 0) > (counts.get(from) ?? 0))
      }
      for (const { to } of [...moves, ...vacancies]) {
        assert.ok((held.get(to) ?? 0) < (counts.get(to) ?? 0))
      }
    }),
  )
})

test('assignor, a plan carried out in any sequence and replanned, costs no further move', () => {
  fc.assert(
    fc.property(WEIGHED, fc.infiniteStream(fc.nat()), (input, picks) => {
      const first = assign(input)
      let steps = first.moves.length + first.vacancies.length
      let now = input
      for (; steps > 0; steps -= 1) {
        const { moves, vacancies } = assign(now)
        const open = [...moves, ...vacancies]
        assert.equal(open.length, steps)
        const chosen = open[(picks.next().value ?? 0) % open.length]
        if (chosen === undefined) throw new Error('nothing left to do')
        now = { ...now, owners: now.owners.with(chosen.partition, chosen.to) }
      }
      const last = assign(now)
      assert.deepEqual([last.moves, last.vacancies], [[], []])
    }),
  )
})

test('assignor, vacancies won one by one, keeps its word on those still vacant', () => {
  fc.assert(
    fc.property(ANY, fc.infiniteStream(fc.nat()), (input, picks) => {
      const { vacancies } = assign(input)
      const won = vacancies.filter(() => (picks.next().value ?? 0) % 2 === 0)
      const owners = Array.from({ length: input.partitions }, (_, p) => input.owners[p] ?? null)
      for (const { partition, to } of won) owners[partition] = to
      const left = vacancies.filter((vacancy) => !won.includes(vacancy))
      assert.deepEqual(assign({ ...input, owners }).vacancies, left)
    }),
  )
})

const SIZES = fc.record({ partitions: fc.nat(60), members: fc.integer({ min: 2, max: 7 }) })

test('assignor, a join of a balanced group, moves the share of the newcomer and nothing else', () => {
  fc.assert(
    fc.property(SIZES, ({ partitions, members }) => {
      const all = equals(...Array.from({ length: members }, (_, index) => `m${index}`))
      const before = balanced(partitions, all.slice(0, -1))
      const newcomer = memberName(`m${members - 1}`)
      const order = hashOrder(all.map((entry) => entry.member))
      const { moves, counts } = assign({ ...before, members: all, order })
      assert.equal(moves.length, counts.get(newcomer))
      assert.ok(moves.every((move) => move.to === newcomer))
    }),
  )
})

test('assignor, a death in a balanced group, moves only what the dead member held', () => {
  fc.assert(
    fc.property(SIZES, fc.nat(), ({ partitions, members }, pick) => {
      const all = equals(...Array.from({ length: members }, (_, index) => `m${index}`))
      const before = balanced(partitions, all)
      const dead = memberName(`m${pick % members}`)
      const owners = before.owners.map((owner) => (owner === dead ? null : owner))
      const living = all.filter((entry) => entry.member !== dead)
      const after = assign({ ...before, members: living, owners, lastOwners: before.owners })
      assert.deepEqual(after.moves, [])
      assert.equal(after.vacancies.length, before.owners.filter((owner) => owner === dead).length)
      assert.ok(after.vacancies.every((vacancy) => vacancy.to !== dead))
    }),
  )
})

test('assignor, a member that returns to its vacancies, gets each back and nothing moves', () => {
  fc.assert(
    fc.property(SIZES, fc.nat(), ({ partitions, members }, pick) => {
      const all = equals(...Array.from({ length: members }, (_, index) => `m${index}`))
      const before = balanced(partitions, all)
      const back = memberName(`m${pick % members}`)
      const owners = before.owners.map((owner) => (owner === back ? null : owner))
      const after = assign({ ...before, owners, lastOwners: before.owners })
      assert.deepEqual(after.targets, before.owners)
      assert.deepEqual(after.moves, [])
    }),
  )
})

test('assignor, 10,000 partitions, asks the order no more often than its work needs', () => {
  const names = Array.from({ length: 20 }, (_, index) => `m${index}`)
  const before = balanced(10_000, equals(...names))
  const counted = (input: AssignmentInput) => {
    const asked = { calls: 0, names: 0 }
    const order = {
      order: (partition: number, count: number) => {
        asked.calls += 1
        const preferred = input.order.order(partition, count)
        asked.names += preferred.length
        return preferred
      },
    }
    const { moves, vacancies } = assign({ ...input, order })
    return { ...asked, moves: moves.length, vacancies: vacancies.length }
  }
  assert.deepEqual(counted(before), { calls: 0, names: 0, moves: 0, vacancies: 0 })
  const all = equals(...names, 'newcomer')
  const join = counted({ ...before, members: all, order: hashOrder(all.map((one) => one.member)) })
  assert.equal(join.moves, 476)
  assert.ok(join.calls <= 10_000 + 476 * 4, `${join.calls} looks at a join`)
  const owners = before.owners.map((owner) => (owner === 'm3' ? null : owner))
  const rest = equals(...names.filter((name) => name !== 'm3'))
  const death = counted({ ...before, members: rest, owners })
  assert.deepEqual([death.moves, death.vacancies], [0, 500])
  assert.ok(death.calls <= 500 * 4, `${death.calls} looks at a death`)
  assert.ok(death.names <= 500 * 30, `${death.names} names at a death`)
})
