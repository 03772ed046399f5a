/**
 * What a run of the demo proves, computed from three sources that no worker writes: the producer's list
 * of acknowledged orders, the ledger's log, and etcd's own history of grants; kills and pauses from the
 * harness's log. The judgement is that of `tenure verify` (src/evidence); here it becomes the report's
 * numbers, and the run is asked whether it was hard enough to show anything.
 *
 * - lost: an acknowledged order without an applied effect. duplicated: one with two.
 * - staleAccepted: accepted under a token that etcd never granted, or below or beside one that the ledger
 *   had accepted before.
 * - overlapMs: time during which effects under two successive tokens of one partition were under way
 *   at once, over hand-overs that the owner committed after its drain (S10).
 * - ownerlessMs: from the moment that etcd has no live owner for a partition to its next grant.
 */
import type { AcceptLine, EffectLine } from '../evidence/accept-log.ts'
import { tokenId } from '../evidence/accept-log.ts'
import { type Distribution, distributionOf, roundMs } from '../evidence/distribution.ts'
import { describeGap, describeViolation, type Violation } from '../evidence/findings.ts'
import {
  type GrantEvent,
  grantsOf,
  type HistoryEvent,
  type HistoryLog,
  previousToken,
} from '../evidence/history-log.ts'
import { type Verification, verifyRun } from '../evidence/verify.ts'
import { effectsByToken } from '../evidence/verify-hand-overs.ts'
import type { PublishedOrder } from './producer.ts'

export type TurmoilLine =
  | { readonly type: 'kill'; readonly member: string; readonly atMs: number }
  | {
      readonly type: 'pause'
      readonly member: string
      readonly atMs: number
      readonly forMs: number
      /** Longer than the session's TTL. */
      readonly beyondTtl: boolean
    }

export type Evidence = {
  readonly published: readonly PublishedOrder[]
  readonly ledger: readonly AcceptLine[]
  readonly history: HistoryLog
  readonly turmoil: readonly TurmoilLine[]
}

export type DemoReport = {
  readonly published: number
  readonly applied: number
  readonly lost: number
  readonly duplicated: number
  readonly staleAccepted: number
  readonly staleRefused: number
  readonly moves: number
  readonly movesWithWorkInFlight: number
  readonly kills: number
  readonly pauses: number
  readonly overlapMs: number
  readonly ownerlessMs: Distribution
  /** Sentences for every condition that does not hold; empty: the run passed. */
  readonly failures: readonly string[]
}

const ZERO_CONDITIONS = ['lost', 'duplicated', 'staleAccepted', 'overlapMs'] as const
const LEAST_CONDITIONS = {
  moves: 20,
  movesWithWorkInFlight: 10,
  kills: 2,
  pauses: 2,
  staleRefused: 1,
} as const
const VIOLATIONS_TOLD_MAX = 20

export function reportOf({ published, ledger, history, turmoil }: Evidence): DemoReport {
  const inputs = published.map(({ input }) => input)
  const verification = verifyRun({ accepts: ledger, history, inputs })
  const { violations, ownerlessMs, drainedOverlapMs } = verification
  const effects = ledger.filter((line): line is EffectLine => line.type === 'effect')
  const moves = grantsOf(history.events).filter(isMove)
  const numbers = {
    published: published.length,
    applied: effects.filter(({ outcome }) => outcome === 'applied').length,
    lost: count(violations, ({ kind }) => kind === 'input-lost'),
    duplicated: count(violations, ({ kind }) => kind === 'input-doubled'),
    staleAccepted: count(violations, ({ promise }) => promise === 'S3'),
    staleRefused: effects.filter(({ outcome }) => outcome === 'refused').length,
    moves: moves.length,
    movesWithWorkInFlight: countBusyMoves(moves, history.events, effectsByToken(effects)),
    kills: turmoil.filter(({ type }) => type === 'kill').length,
    pauses: turmoil.filter((line) => line.type === 'pause' && line.beyondTtl).length,
    overlapMs: roundMs(drainedOverlapMs),
    ownerlessMs: distributionOf(ownerlessMs ?? []),
  }
  return { ...numbers, failures: failuresOf(numbers, verification) }
}

function failuresOf(
  numbers: Omit<DemoReport, 'failures'>,
  { gaps, violations }: Verification,
): readonly string[] {
  const failures: string[] = gaps.map((gap) => `nothing can be concluded: ${describeGap(gap)}`)
  for (const name of ZERO_CONDITIONS) {
    if (numbers[name] !== 0) failures.push(`${name} is ${numbers[name]}, must be 0`)
  }
  for (const [name, least] of Object.entries(LEAST_CONDITIONS)) {
    const value = numbers[name as keyof typeof LEAST_CONDITIONS]
    if (value < least) failures.push(`${name} is ${value}, the run needs at least ${least}`)
  }
  failures.push(...violations.slice(0, VIOLATIONS_TOLD_MAX).map(describeViolation))
  const untold = violations.length - VIOLATIONS_TOLD_MAX
  if (untold > 0) failures.push(`${untold} more violations: \`tenure verify\` names them all`)
  return failures
}

function isMove({ record }: GrantEvent): boolean {
  if (record.previous === null) return false
  return record.how !== 'election' && record.previous.member !== record.owner.member
}

/** Moves of which the old owner had an effect under way when it was revoked. */
function countBusyMoves(
  moves: readonly GrantEvent[],
  history: readonly HistoryEvent[],
  byToken: ReadonlyMap<string, readonly EffectLine[]>,
): number {
  const revokedAt = new Map<string, number>()
  for (const event of history) {
    if (event.type !== 'record' || event.record.phase !== 'revoking') continue
    const { incarnation, generation, owner } = event.record
    const { partition } = event
    const id = tokenId({ partition, incarnation, generation, session: owner.session })
    if (!revokedAt.has(id)) revokedAt.set(id, event.atMs)
  }
  return count(moves, (move) => {
    const token = previousToken(move)
    if (token === null) return false
    const id = tokenId(token)
    const atMs = revokedAt.get(id)
    if (atMs === undefined) return false
    return (byToken.get(id) ?? []).some(({ beginMs, endMs }) => beginMs <= atMs && atMs <= endMs)
  })
}

function count<T extends Violation | GrantEvent>(
  values: readonly T[],
  counts: (value: T) => boolean,
): number {
  return values.filter(counts).length
}
