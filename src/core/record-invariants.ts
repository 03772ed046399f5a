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

export const NONE: Violations = []

/** Gathers what does not hold. Nothing broken: always the same empty list, and nothing is allocated for it. */
export class Rules {
  private found: Violation[] | null = null

  need(holds: boolean, name: InvariantName, detail: string): void {
    if (!holds) this.broken(name, detail)
  }

  broken(name: InvariantName, detail: string): void {
    this.found ??= []
    this.found.push({ name, detail })
  }

  get violations(): Violations {
    return this.found ?? NONE
  }
}

/** One change of one record, whoever made it. Not valid across a restore of the store. */
export function checkRecordTransition(
  before: PartitionRecord | null,
  after: PartitionRecord,
): Violations {
  const rules = new Rules()
  transitionRules(rules, before, after)
  return rules.violations
}

function transitionRules(
  rules: Rules,
  before: PartitionRecord | null,
  after: PartitionRecord,
): void {
  const isNewId = before?.operation !== after.operation
  rules.need(isNewId, 'record-I2', 'the operation id was used before')
  const fits = after.phase === 'vacant' ? !('owner' in after) : after.owner.session !== undefined
  if (!fits) rules.broken('record-I3', `phase ${after.phase} and its owner do not fit`)
  if (after.phase === 'owned') grantRules(rules, before, after)
  else sameGrantRules(rules, before, after)
}

/** `owned` is only ever written by a grant. */
function grantRules(
  rules: Rules,
  before: PartitionRecord | null,
  after: PartitionRecord & { readonly phase: 'owned' },
): void {
  const previous = before === null || before.phase === 'vacant' ? null : before
  const isChained =
    previous === null ||
    (after.previous?.session === previous.owner.session &&
      comparePositions(after.previous, previous) === 0)
  const rises = before === null || comparePositions(after, before) > 0
  rules.need(rises, 'S1', 'a grant does not raise the position')
  const isNext = after.generation === (before?.generation ?? 0) + 1
  rules.need(isNext, 'record-I1', 'a grant raises the generation by one')
  rules.need(isChained, 'S2', 'a grant does not name the owner before it')
  const mayGrant = before?.phase !== 'halted' || after.incarnation > before.incarnation
  rules.need(mayGrant, 'S4', 'a halted partition was granted before the incarnation rose')
}

const NEXT_PHASES: Readonly<Record<PartitionRecord['phase'], readonly string[]>> = {
  vacant: [],
  owned: ['vacant', 'revoking', 'halted'],
  revoking: ['vacant', 'revoking', 'halted'],
  halted: ['vacant'],
}

function sameGrantRules(
  rules: Rules,
  before: PartitionRecord | null,
  after: Exclude<PartitionRecord, { phase: 'owned' }>,
): void {
  if (before === null) {
    rules.broken('record-I1', 'the first record is not a grant')
    return
  }
  const stays = comparePositions(before, after) === 0
  rules.need(stays, 'record-I1', 'the position changed without a grant')
  if (!NEXT_PHASES[before.phase].includes(after.phase)) {
    rules.broken('record-I4', `no arrow leads from ${before.phase} to ${after.phase}`)
  }
  const isSameOwner =
    after.phase === 'vacant' || after.owner.session === recordOwner(before)?.session
  rules.need(isSameOwner, 'S2', 'the owner changed without a grant')
  if (before.phase === 'revoking' && after.phase === 'revoking') {
    const isRewrite =
      after.move.id === before.move.id && after.move.rewrites === before.move.rewrites + 1
    rules.need(isRewrite, 'S9', 'a second move replaced the pending one')
  }
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
  const rules = new Rules()
  commitRules(rules, replaced, commit, by)
  return rules.violations
}

export function commitRules(
  rules: Rules,
  replaced: PartitionRecord | null,
  { next, requires }: Commit,
  by: 'member' | 'rebalancer',
): void {
  transitionRules(rules, replaced, next)
  const isTheirs = by === 'member' ? next.phase !== 'revoking' : has(requires, 'rebalancer')
  rules.need(isTheirs, 'S9', 'a rebalancer must require its election, a member never revokes')
  if (next.phase !== 'owned') return
  const { member, session } = next.owner
  const last = recordOwner(replaced)
  const requiresGrantee = requires.some(
    (one) => one.type === 'session-alive' && one.member === member && one.session === session,
  )
  rules.need(requiresGrantee, 'S4', 'a grant must require that its grantee lives')
  const proves =
    next.how !== 'election' ||
    last === null ||
    requires.some((one) => one.type === 'session-gone' && one.session === last.session)
  rules.need(proves, 'S4', "an election must require that the last owner's session is gone")
  const requiresIncarnation = requires.some(
    (one) => one.type === 'incarnation' && one.incarnation === next.incarnation,
  )
  rules.need(requiresIncarnation, 'S4', 'a grant must require the incarnation that it writes')
  const forbids =
    has(requires, 'not-cordoned') &&
    has(requires, 'group-enabled') &&
    has(requires, 'partition-enabled')
  rules.need(forbids, 'S4', 'a grant must require that nothing forbids it')
}

function has(requires: readonly Requirement[], type: Requirement['type']): boolean {
  return requires.some((requirement) => requirement.type === type)
}
