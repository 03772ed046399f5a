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
import type { Rule, Violations } from './record-invariants.ts'
import { brokenOf, checkCommit, NONE } from './record-invariants.ts'
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
  const grant = isHeld(after.now) ? after.now.grant : null
  const rules: Rule[] = [
    [comparePositions(after.highest, before.highest) >= 0, 'seat-I1', 'highest fell'],
    [
      grant === null || comparePositions(grant, after.highest) <= 0,
      'seat-I2',
      'a grant is held above the highest position remembered',
    ],
    [
      grant === null || context.me?.session === grant.owner.session || !isNewHere(before, grant),
      'S6',
      'a grant of another session was taken',
    ],
    [
      event.type !== 'session-ended' || after.now.status === 'absent',
      'S6',
      'something is held beyond the end of the session',
    ],
    ...gateRules(before, after, actions),
    ...endingRules(before, after, actions),
    ...handOverRules(before, event, context, after),
  ]
  const broken = [...brokenOf(rules), ...commitViolations(before, event, after, actions)]
  return broken.length === 0 ? NONE : broken
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
  before: Seat,
  after: Seat,
  actions: readonly OwnershipAction[],
): readonly Rule[] {
  const opens = actions.some(({ type }) => type === 'open-gate')
  const closes = actions.some(({ type }) => CLOSING.has(type))
  return [
    [!opens || isOpen(after), 'seat-I3', 'the gate opened while it must not'],
    [!isOpen(after) || isOpen(before) || opens, 'seat-I3', 'the gate was not told to open'],
    [!isOpen(before) || isOpen(after) || closes, 'seat-I3', 'the gate was not told to close'],
    [!isOpen(after) || after.asked === null, 'seat-I6', 'the gate is open in doubt'],
  ]
}

const CLOSING: ReadonlySet<string> = new Set(['suspend-gate', 'drain', 'lose'])

/** The grant that the host was told of and not yet told the end of. */
function begunGrant(now: Ownership): Grant | null {
  if (isHeld(now)) return now.grant
  return now.status === 'handing-over' && now.ending === 'drained' ? now.grant : null
}

function endingRules(
  before: Seat,
  after: Seat,
  actions: readonly OwnershipAction[],
): readonly Rule[] {
  const was = begunGrant(before.now)
  const is = begunGrant(after.now)
  const isSame = was !== null && is !== null && comparePositions(was, is) === 0
  const ends = count(actions, 'lose') + count(actions, 'release')
  const begins = count(actions, 'begin')
  return [
    [ends === (was !== null && !isSame ? 1 : 0), 'seat-I7', `${ends} endings of one grant`],
    [begins === (is !== null && !isSame ? 1 : 0), 'seat-I7', `${begins} beginnings of one grant`],
    [
      begins === 0 || (is !== null && isNewHere(before, is)),
      'S5',
      'a position at or below the highest remembered was acquired',
    ],
  ]
}

function mayHaveWork(now: Ownership): now is HeldNow {
  return now.status === 'serving' || now.status === 'draining'
}

function handOverRules(
  before: Seat,
  event: OwnershipEvent,
  context: OwnershipContext,
  after: Seat,
): readonly Rule[] {
  const { now } = after
  if (now.status !== 'handing-over') return []
  const was = before.now
  const goesOn = was.status === 'handing-over' && was.ending === now.ending
  const holds =
    goesOn ||
    (now.ending === 'drained'
      ? was.status === 'draining' && event.type === 'drained'
      : now.ending === 'forced'
        ? was.status === 'draining' && context.fenced
        : !mayHaveWork(was) || comparePositions(was.grant, now.grant) !== 0)
  return [
    [holds, 'S5', `given up as ${now.ending} out of ${was.status} by ${event.type}`],
    [comparePositions(now.grant, after.highest) <= 0, 'seat-I2', 'given up, yet not remembered'],
  ]
}

/** Events that answer a commit under way, or show that it is over. */
const ANSWERS: ReadonlySet<string> = new Set([
  ...['committed', 'refused', 'refused-all', 'confirmed', 'seen'],
])

function commitViolations(
  before: Seat,
  event: OwnershipEvent,
  after: Seat,
  actions: readonly OwnershipAction[],
): Violations {
  const sent = actions.flatMap((action) => (action.type === 'commit' ? [action.commit] : []))
  const [commit] = sent
  if (commit === undefined) return NONE
  const isFree = !('commit' in before.now) || ANSWERS.has(event.type)
  const broken = brokenOf([
    [sent.length === 1, 'seat-I5', 'two commits in one step'],
    [isFree, 'seat-I5', 'a commit while another is under way'],
    ['commit' in after.now && after.now.commit === commit, 'seat-I5', 'a commit is forgotten'],
  ])
  const replaced = replacedBy(commit, event, after)
  return replaced === undefined ? broken : [...broken, ...checkCommit(replaced, commit, 'member')]
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
