/** Plan: each promise broken on purpose, one at a time; the check names it. Sound changes: nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Commit } from '../../src/core/commit.ts'
import { elect, halt, handOver, revoke, vacate } from '../../src/core/commit.ts'
import { checkOwnershipStep } from '../../src/core/invariants.ts'
import type {
  As,
  Ownership,
  OwnershipAction,
  OwnershipEvent,
  Seat,
} from '../../src/core/ownership-state.ts'
import type { PartitionRecord } from '../../src/core/partition-record.ts'
import { checkCommit, checkRecordTransition } from '../../src/core/record-invariants.ts'
import {
  ACQUIRING,
  absent,
  at,
  B,
  C,
  CONTEXT,
  DRAINING,
  GRANT,
  halted,
  ME,
  NOW_MS,
  owned,
  PARTITION,
  REBORN,
  revoking,
  SERVING,
  SETTLING,
  seat,
  vacant,
} from './ownership-cases.ts'

const { stamp } = CONTEXT

function names(violations: readonly { readonly name: string }[]): readonly string[] {
  return violations.map(({ name }) => name)
}

// Records.

const NEXT = elect(PARTITION, owned(), B, 1, stamp).next

test('record transitions, every arrow, break nothing', () => {
  const election = elect(PARTITION, null, B, 1, stamp).next
  const arrows: readonly [PartitionRecord | null, PartitionRecord][] = [
    [null, election],
    [owned().record, NEXT],
    [owned().record, revoking(B).record],
    [revoking(B).record, revoking(C, {}, 1).record],
    [revoking(B).record, handOver(PARTITION, revoking(B), B, 1, stamp).next],
    [revoking(B).record, vacate(PARTITION, revoking(B), stamp).next],
    [owned().record, halt(PARTITION, owned(), ME, 'fence-ahead', stamp).next],
    [halted().record, elect(PARTITION, halted(), B, 2, stamp).next],
    [halted().record, vacate(PARTITION, halted(), stamp).next],
    [vacant().record, elect(PARTITION, vacant(), B, 1, stamp).next],
  ]
  for (const [before, after] of arrows) {
    assert.deepEqual(checkRecordTransition(before, after), [])
  }
})

test('record transitions, broken ones, are named', () => {
  const next = NEXT
  const fresh = { operation: 'fresh' }
  const cases: readonly [string[], PartitionRecord | null, PartitionRecord][] = [
    [['S1', 'record-I1'], owned().record, { ...next, generation: 3 }],
    [['S1'], owned({ incarnation: 2 }).record, { ...next, previous: { ...ME, ...at(3, 2) } }],
    [['record-I1'], owned().record, { ...next, generation: 5 }],
    [['record-I1'], null, vacant().record],
    [['record-I1'], null, { ...next, previous: null }],
    [['S2'], owned().record, { ...next, previous: null }],
    [['S2'], owned().record, revoking(B, { owner: REBORN }).record],
    [['record-I2'], owned().record, { ...next, operation: owned().record.operation }],
    [['record-I3'], owned().record, { ...vacant(fresh).record, owner: ME } as PartitionRecord],
    [['record-I4'], halted().record, revoking(B).record],
    [['record-I4'], vacant().record, vacant(fresh).record],
    [['record-I1'], owned().record, revoking(B, { generation: 4 }).record],
    [['S4'], halted().record, elect(PARTITION, halted(), B, 1, stamp).next],
    [['S9'], revoking(B).record, revoking(C, { operation: 'second' }, 0).record],
  ]
  for (const [expected, before, after] of cases) {
    assert.deepEqual(names(checkRecordTransition(before, after)), expected)
  }
})

// Commits.

function without(commit: Commit, type: string): Commit {
  return { ...commit, requires: commit.requires.filter((one) => one.type !== type) }
}

test('commits, each requirement left out, break S4 or S9', () => {
  const { record } = owned()
  const election = elect(PARTITION, owned(), B, 1, stamp)
  assert.deepEqual(checkCommit(record, election, 'member'), [])
  for (const type of [
    'session-alive',
    'session-gone',
    'incarnation',
    'not-cordoned',
    'group-enabled',
    'partition-enabled',
  ]) {
    assert.deepEqual(names(checkCommit(record, without(election, type), 'member')), ['S4'], type)
  }
  const other = elect(PARTITION, owned(), B, 1, stamp)
  const moved = { ...other, next: { ...other.next, owner: C } as PartitionRecord }
  assert.deepEqual(names(checkCommit(record, moved, 'member')), ['S4'])
})

test('commits of a rebalancer without its election, and revokes by a member, break S9', () => {
  const { record, raw } = owned()
  if (record.phase !== 'owned') throw new Error('owned expected')
  const pending = revoking(B).record
  if (pending.phase !== 'revoking') throw new Error('revoking expected')
  const asked = revoke(PARTITION, { record, raw }, pending.move, C.session, stamp)
  assert.deepEqual(checkCommit(record, asked, 'rebalancer'), [])
  assert.deepEqual(names(checkCommit(record, asked, 'member')), ['S9'])
  assert.deepEqual(names(checkCommit(record, without(asked, 'rebalancer'), 'rebalancer')), ['S9'])
})

// Steps.

function check(
  before: Seat,
  event: OwnershipEvent['type'],
  now: Ownership,
  actions: readonly OwnershipAction[] = [],
  over: { readonly after?: Partial<Seat>; readonly context?: Partial<typeof CONTEXT> } = {},
): readonly string[] {
  const after = { ...before, now, ...over.after }
  const context = { ...CONTEXT, ...over.context }
  const step = { seat: after, actions, wakeAtMs: null }
  return names(checkOwnershipStep(before, { type: event } as OwnershipEvent, context, step))
}

const HANDING: As<'handing-over'> = {
  status: 'handing-over',
  grant: GRANT,
  stored: revoking(B),
  giveUp: DRAINING.giveUp,
  ending: 'drained',
  commit: handOver(PARTITION, revoking(B), B, 1, stamp),
  drainMs: 0,
  sentAtMs: NOW_MS,
}
const SENDS = { type: 'commit', commit: HANDING.commit, purpose: 'hand-over' } as const
const RELEASED = { type: 'release', to: null, drainMs: 0, handOffMs: 0 } as const
const LOST = { type: 'lose', why: 'superseded' } as const
const OPENS = { type: 'open-gate' } as const
const DRAINS = { type: 'drain', giveUp: DRAINING.giveUp } as const

test('steps that change nothing, break nothing and cost nothing', () => {
  const same = seat(SERVING)
  const step = { seat: same, actions: [], wakeAtMs: null }
  const first = checkOwnershipStep(same, { type: 'wake' }, CONTEXT, step)
  assert.deepEqual(first, [])
  assert.equal(checkOwnershipStep(same, { type: 'wake' }, CONTEXT, step), first)
})

test('steps, broken ones, are named', () => {
  const begun = { type: 'begin', grant: GRANT } as const
  const low = absent(at(2))
  const cases: readonly [string[], readonly string[]][] = [
    // Memory.
    [['seat-I1'], check(absent(), 'seen', { status: 'absent' }, [], { after: { highest: at(2) } })],
    [['seat-I2'], check(low, 'seen', ACQUIRING, [begun])],
    [['S5'], check(absent(), 'seen', ACQUIRING, [begun])],
    // Sessions.
    [
      ['S6'],
      check(low, 'seen', ACQUIRING, [begun], { after: { highest: at(3) }, context: { me: null } }),
    ],
    [['S6'], check(seat(HANDING), 'session-ended', { ...HANDING })],
    // The gate.
    [['seat-I3'], check(seat(ACQUIRING), 'acquired', SETTLING, [OPENS])],
    [['seat-I3'], check(seat(ACQUIRING), 'acquired', SERVING)],
    [['seat-I3'], check(seat(SERVING), 'heard-higher', SETTLING)],
    [
      ['seat-I6'],
      check(seat(ACQUIRING), 'acquired', SERVING, [OPENS], { after: { asked: 'x' as never } }),
    ],
    // Beginnings and endings.
    [['seat-I7'], check(seat(SETTLING), 'confirmed', { status: 'absent' })],
    [['seat-I7'], check(seat(SERVING), 'confirmed', { status: 'absent' }, [LOST, RELEASED])],
    [['seat-I7'], check(low, 'seen', ACQUIRING, [], { after: { highest: at(3) } })],
    [['seat-I7'], check(seat(HANDING), 'committed', { status: 'absent' })],
    // Drain before hand-over.
    [['S5'], check(seat(SERVING), 'give-up', HANDING, [DRAINS])],
    [['S5'], check(seat(DRAINING), 'wake', HANDING, [SENDS])],
    [['S5'], check(seat(DRAINING), 'wake', { ...HANDING, ending: 'forced' }, [LOST])],
    [['S5'], check(seat(DRAINING), 'drained', { ...HANDING, ending: 'unused' }, [LOST])],
    // One commit at a time.
    [['seat-I5'], check(seat(HANDING), 'committed', { ...HANDING }, [SENDS, SENDS])],
    [['seat-I5'], check(seat(HANDING), 'drained', { ...HANDING }, [SENDS])],
    [['seat-I5'], check(seat(HANDING), 'committed', { status: 'absent' }, [RELEASED, SENDS])],
  ]
  for (const [index, [expected, found]] of cases.entries()) {
    assert.deepEqual(found, expected, `case ${index}`)
  }
})

test('steps that send an unsound commit, are named by it', () => {
  const unsound = without(HANDING.commit, 'session-alive')
  const now = { ...HANDING, commit: unsound }
  assert.deepEqual(check(seat(DRAINING), 'drained', now, [{ ...SENDS, commit: unsound }]), ['S4'])
})
