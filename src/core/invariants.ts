/**
 * The promises of the machines as code. Each function compares a before and an after and names what is
 * broken; nothing broken: the same empty list, so that they cost next to nothing and run in production
 * after every step. Whoever finds a violation closes every gate and stops the worker: it is a bug, and
 * going on would only hide it.
 *
 * Here: S5, S6 and the invariants that `ownership.ts` lists, over one step of one seat, and through
 * `record-invariants.ts` S1, S2, S4 and S9 over what the step commits. Not checked: what needs two
 * members or a resource to see (S3, S7, S10); the search in the tests and the simulator do that.
 */
import type { Commit } from './commit.ts'
import type {
  Grant,
  Ownership,
  OwnershipAction,
  OwnershipContext,
  OwnershipEvent,
  OwnershipStep,
  Seat,
} from './ownership-state.ts'
import type { PartitionRecord } from './partition-record.ts'
import type { Violations } from './record-invariants.ts'
import { commitRules, NONE, Rules } from './record-invariants.ts'
import { comparePositions } from './token.ts'

/** One step of one seat. */
export function checkOwnershipStep(
  before: Seat,
  event: OwnershipEvent,
  context: OwnershipContext,
  step: OwnershipStep,
): Violations {
  const { seat: after, actions } = step
  if (after === before && actions.length === 0) return NONE
  const rules = new Rules()
  seatRules(rules, before, event, context, after)
  gateRules(rules, before, after, actions)
  endingRules(rules, before, after, actions)
  handOverRules(rules, before, event, context, after)
  sentRules(rules, before, event, after, actions)
  return rules.violations
}

function seatRules(
  rules: Rules,
  before: Seat,
  event: OwnershipEvent,
  context: OwnershipContext,
  { highest, now }: Seat,
): void {
  const grant = isHeld(now) ? now.grant : null
  rules.need(comparePositions(highest, before.highest) >= 0, 'seat-I1', 'highest fell')
  const isRemembered = grant === null || comparePositions(grant, highest) <= 0
  rules.need(isRemembered, 'seat-I2', 'a grant is held above the highest position remembered')
  const isOwn =
    grant === null || context.me?.session === grant.owner.session || !isNewHere(before, grant)
  rules.need(isOwn, 'S6', 'a grant of another session was taken')
  const isOver = event.type !== 'session-ended' || now.status === 'absent'
  rules.need(isOver, 'S6', 'something is held beyond the end of the session')
}

type HeldNow = Extract<Ownership, { status: 'acquiring' | 'serving' | 'draining' }>

function isHeld(now: Ownership): now is HeldNow {
  return now.status === 'acquiring' || now.status === 'serving' || now.status === 'draining'
}

function isNewHere(before: Seat, grant: Grant): boolean {
  return comparePositions(grant, before.highest) > 0
}

function isOpen({ now }: Seat): boolean {
  return now.status === 'serving' && now.trust === 'sure'
}

function gateRules(
  rules: Rules,
  before: Seat,
  after: Seat,
  actions: readonly OwnershipAction[],
): void {
  const was = isOpen(before)
  const is = isOpen(after)
  const opens = count(actions, 'open-gate') > 0
  const closes = actions.some(({ type }) => CLOSING.has(type))
  rules.need(!opens || is, 'seat-I3', 'the gate opened while it must not')
  rules.need(!is || was || opens, 'seat-I3', 'the gate was not told to open')
  rules.need(!was || is || closes, 'seat-I3', 'the gate was not told to close')
  rules.need(!is || after.asked === null, 'seat-I6', 'the gate is open in doubt')
}

const CLOSING: ReadonlySet<string> = new Set(['suspend-gate', 'drain', 'lose'])

/** The grant that the host was told of and not yet told the end of. */
function begunGrant(now: Ownership): Grant | null {
  if (isHeld(now)) return now.grant
  return now.status === 'handing-over' && now.ending === 'drained' ? now.grant : null
}

function endingRules(
  rules: Rules,
  before: Seat,
  after: Seat,
  actions: readonly OwnershipAction[],
): void {
  const was = begunGrant(before.now)
  const is = begunGrant(after.now)
  const isSame = was !== null && is !== null && comparePositions(was, is) === 0
  const ends = count(actions, 'lose') + count(actions, 'release')
  const begins = count(actions, 'begin')
  if (ends !== (was !== null && !isSame ? 1 : 0)) {
    rules.broken('seat-I7', `${ends} endings of one grant`)
  }
  if (begins !== (is !== null && !isSame ? 1 : 0)) {
    rules.broken('seat-I7', `${begins} beginnings of one grant`)
  }
  const isNew = begins === 0 || (is !== null && isNewHere(before, is))
  rules.need(isNew, 'S5', 'a position at or below the highest remembered was acquired')
}

function mayHaveWork(now: Ownership): now is HeldNow {
  return now.status === 'serving' || now.status === 'draining'
}

function handOverRules(
  rules: Rules,
  before: Seat,
  event: OwnershipEvent,
  context: OwnershipContext,
  { highest, now }: Seat,
): void {
  if (now.status !== 'handing-over') return
  const was = before.now
  const goesOn = was.status === 'handing-over' && was.ending === now.ending
  const holds =
    goesOn ||
    (now.ending === 'drained'
      ? was.status === 'draining' && event.type === 'drained'
      : now.ending === 'forced'
        ? was.status === 'draining' && context.fenced
        : !mayHaveWork(was) || comparePositions(was.grant, now.grant) !== 0)
  if (!holds) rules.broken('S5', `given up as ${now.ending} out of ${was.status} by ${event.type}`)
  const isRemembered = comparePositions(now.grant, highest) <= 0
  rules.need(isRemembered, 'seat-I2', 'given up, yet not remembered')
}

/** Events that answer a commit under way, or show that it is over. */
const ANSWERS: ReadonlySet<string> = new Set([
  ...['committed', 'refused', 'refused-all', 'confirmed', 'seen'],
])

function sentRules(
  rules: Rules,
  before: Seat,
  event: OwnershipEvent,
  after: Seat,
  actions: readonly OwnershipAction[],
): void {
  const sent = count(actions, 'commit')
  if (sent === 0) return
  rules.need(sent === 1, 'seat-I5', 'two commits in one step')
  const isFree = !('commit' in before.now) || ANSWERS.has(event.type)
  rules.need(isFree, 'seat-I5', 'a commit while another is under way')
  for (const action of actions) {
    if (action.type !== 'commit') continue
    const { commit } = action
    const isKept = 'commit' in after.now && after.now.commit === commit
    rules.need(isKept, 'seat-I5', 'a commit is forgotten')
    const replaced = replacedBy(commit, event, after)
    if (replaced !== undefined) commitRules(rules, replaced, commit, 'member')
  }
}

/** The record that a commit replaces, where the step shows it; undefined otherwise. */
function replacedBy(
  commit: Commit,
  event: OwnershipEvent,
  { now }: Seat,
): PartitionRecord | null | undefined {
  if (now.status === 'handing-over') {
    return now.stored.raw === commit.expected ? now.stored.record : undefined
  }
  if (event.type !== 'campaign') return undefined
  return event.stored?.record ?? null
}

function count(actions: readonly OwnershipAction[], type: OwnershipAction['type']): number {
  let found = 0
  for (const action of actions) if (action.type === type) found += 1
  return found
}
