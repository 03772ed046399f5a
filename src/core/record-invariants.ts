/**
 * The promises about records as code: S1, S2 and S9 over one record's changes, S4 over what a commit
 * requires, and the invariants that `partition-record.ts` lists. See `invariants.ts`.
 */
import type { Commit, Requirement } from './commit.ts'
import type { PartitionRecord } from './partition-record.ts'
import { recordOwner } from './partition-record.ts'
import { comparePositions } from './token.ts'

export type InvariantName =
  | 'S1'
  | 'S2'
  | 'S4'
  | 'S5'
  | 'S6'
  | 'S9'
  | `record-I${1 | 2 | 3 | 4}`
  | `seat-I${1 | 2 | 3 | 4 | 5 | 6 | 7}`

export type Violation = { readonly name: InvariantName; readonly detail: string }
export type Violations = readonly Violation[]

export type Rule = readonly [holds: boolean, name: InvariantName, detail: string]

export const NONE: Violations = []

/** The broken ones; nothing broken: always the same empty list. */
export function brokenOf(rules: readonly Rule[]): Violations {
  let broken: Violation[] | null = null
  for (const [holds, name, detail] of rules) {
    if (holds) continue
    broken ??= []
    broken.push({ name, detail })
  }
  return broken ?? NONE
}

/** One change of one record, whoever made it. Not valid across a restore of the store. */
export function checkRecordTransition(
  before: PartitionRecord | null,
  after: PartitionRecord,
): Violations {
  const always: Rule[] = [
    [before?.operation !== after.operation, 'record-I2', 'the operation id was used before'],
    [
      after.phase === 'vacant' ? !('owner' in after) : after.owner.session !== undefined,
      'record-I3',
      `phase ${after.phase} and its owner do not fit`,
    ],
  ]
  const rules = after.phase === 'owned' ? grantRules(before, after) : sameGrantRules(before, after)
  return brokenOf([...always, ...rules])
}

/** `owned` is only ever written by a grant. */
function grantRules(before: PartitionRecord | null, after: PartitionRecord): readonly Rule[] {
  const previous = before === null || before.phase === 'vacant' ? null : before
  const isChained =
    previous === null ||
    (after.previous?.session === previous.owner.session &&
      comparePositions(after.previous, previous) === 0)
  return [
    [
      before === null || comparePositions(after, before) > 0,
      'S1',
      'a grant does not raise the position',
    ],
    [
      after.generation === (before?.generation ?? 0) + 1,
      'record-I1',
      'a grant raises the generation by one',
    ],
    [isChained, 'S2', 'a grant does not name the owner before it'],
    [
      before?.phase !== 'halted' || after.incarnation > before.incarnation,
      'S4',
      'a halted partition was granted before the incarnation rose',
    ],
  ]
}

const NEXT_PHASES: Readonly<Record<PartitionRecord['phase'], readonly string[]>> = {
  vacant: [],
  owned: ['vacant', 'revoking', 'halted'],
  revoking: ['vacant', 'revoking', 'halted'],
  halted: ['vacant'],
}

function sameGrantRules(before: PartitionRecord | null, after: PartitionRecord): readonly Rule[] {
  if (before === null) return [[false, 'record-I1', 'the first record is not a grant']]
  const owner = recordOwner(before)
  const rules: Rule[] = [
    [comparePositions(before, after) === 0, 'record-I1', 'the position changed without a grant'],
    [
      NEXT_PHASES[before.phase].includes(after.phase),
      'record-I4',
      `no arrow leads from ${before.phase} to ${after.phase}`,
    ],
    [
      after.phase === 'vacant' || after.owner.session === owner?.session,
      'S2',
      'the owner changed without a grant',
    ],
  ]
  if (before.phase === 'revoking' && after.phase === 'revoking') {
    const isRewrite =
      after.move.id === before.move.id && after.move.rewrites === before.move.rewrites + 1
    rules.push([isRewrite, 'S9', 'a second move replaced the pending one'])
  }
  return rules
}

/**
 * What a commit must require, whoever sends it.
 * @param replaced the record that `commit.expected` stands for
 */
export function checkCommit(
  replaced: PartitionRecord | null,
  commit: Commit,
  by: 'member' | 'rebalancer',
): Violations {
  const { next, requires } = commit
  const rules: Rule[] = [
    [
      by === 'member' ? next.phase !== 'revoking' : has(requires, 'rebalancer'),
      'S9',
      'a rebalancer must require its election, a member never revokes',
    ],
  ]
  if (next.phase === 'owned') {
    const { member, session } = next.owner
    const last = recordOwner(replaced)
    const requiresAll = requires.some(
      (one) => one.type === 'session-alive' && one.member === member && one.session === session,
    )
    const proves =
      next.how !== 'election' ||
      last === null ||
      requires.some((one) => one.type === 'session-gone' && one.session === last.session)
    rules.push(
      [requiresAll, 'S4', 'a grant must require that its grantee lives'],
      [proves, 'S4', "an election must require that the last owner's session is gone"],
      [
        requires.some((one) => one.type === 'incarnation' && one.incarnation === next.incarnation),
        'S4',
        'a grant must require the incarnation that it writes',
      ],
      [
        has(requires, 'not-cordoned') &&
          has(requires, 'group-enabled') &&
          has(requires, 'partition-enabled'),
        'S4',
        'a grant must require that nothing forbids it',
      ],
    )
  }
  const broken = [...checkRecordTransition(replaced, next), ...brokenOf(rules)]
  return broken.length === 0 ? NONE : broken
}

function has(requires: readonly Requirement[], type: Requirement['type']): boolean {
  return requires.some((requirement) => requirement.type === type)
}
