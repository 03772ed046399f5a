/**
 * The verdict over a run: safety by `tenure verify` (src/evidence) and by the rules of each single write
 * of a record, liveness by its bounds, and whether the run was hard enough to show anything.
 *
 * What the stream itself lost is told apart by reading it whole at the end (stream-losses.ts).
 */
import { type AcceptLine, tokenId } from '../../src/evidence/accept-log.ts'
import { describeGap, describeViolation } from '../../src/evidence/findings.ts'
import { grantsOf, type HistoryLog } from '../../src/evidence/history-log.ts'
import { type Verification, verifyRun } from '../../src/evidence/verify.ts'
import { assertGrantsSound } from '../e2e/support/group-history.ts'
import type { AcceptedEffect } from './accept-store.ts'
import type { FaultLine } from './faults.ts'
import { type Measure, measureLiveness } from './liveness.ts'
import { type MachineLine, shareOf } from './machine-load.ts'
import type { UnexpectedEnd } from './nodes.ts'
import type { PublishedOrder } from './producer-program.ts'
import type { Settled } from './settled.ts'
import { findStreamLosses, type StoredOrders } from './stream-losses.ts'
import type { RefusedLine } from './worker-program.ts'

export type RunEvidence = {
  readonly fromMs: number
  readonly toMs: number
  readonly accepts: readonly AcceptLine[]
  readonly effects: readonly AcceptedEffect[]
  readonly refused: readonly RefusedLine[]
  readonly history: HistoryLog
  readonly published: readonly PublishedOrder[]
  readonly stored: StoredOrders
  readonly faults: readonly FaultLine[]
  readonly leaderChangesMs: readonly number[]
  readonly settled: readonly Settled[]
  readonly machine: readonly MachineLine[]
  readonly ends: readonly UnexpectedEnd[]
}

export type Failure = {
  readonly promise: string
  readonly partition: number | null
  readonly atMs: number | null
  readonly text: string
}

export type Counts = {
  readonly published: number
  readonly applied: number
  readonly lost: number
  readonly duplicated: number
  readonly staleAccepted: number
  readonly staleRefused: number
  readonly lostByStream: number
  readonly grants: number
  readonly handOvers: number
  readonly forced: number
  readonly faults: number
  readonly faultsPerMinute: number
  /** Share of the faults that began while another was under way. */
  readonly overlapping: number
  readonly leaderChanges: number
  readonly drainedOverlapMs: number
  /** Durations above their bound while the machine stalled. */
  readonly voided: number
  /** How much of the run they cover together, 0 .. 1. */
  readonly voidedShare: number
}

export type Judgement = {
  readonly verdict: 'passed' | 'failed' | 'machine-too-busy'
  readonly counts: Counts
  readonly verification: Verification
  readonly measures: readonly Measure[]
  readonly failures: readonly Failure[]
}

const FAULTS_PER_MINUTE_LEAST = 12
const VOIDED_SHARE_MAX = 0.1

export function judgeRun(evidence: RunEvidence): Judgement {
  const { history, accepts, refused, published, faults } = evidence
  const { gone, behind } = findStreamLosses(published, evidence.effects, evidence.stored)
  const kept = published
    .map(({ input }) => input)
    .filter((input) => !gone.has(input) && !behind.has(input))
  const verification = verifyRun({ accepts: [...accepts, ...refused], history, inputs: kept })
  const measures = measureLiveness({
    ...{ history: history.events, accepts: [...accepts, ...refused], settled: evidence.settled },
    ...{ machine: evidence.machine, faults, leaderChangesMs: evidence.leaderChangesMs },
    fromMs: evidence.fromMs,
  })
  const counts = countAll(evidence, verification, measures, published.length - kept.length)
  const safety = safetyFailures(evidence, verification, counts)
  const liveness = measures.filter(({ verdict }) => verdict === 'broken').map(describeMeasure)
  const failures = [...safety, ...liveness]
  const isTooBusy = counts.voidedShare > VOIDED_SHARE_MAX
  const failed = failures.length > 0 ? 'failed' : 'passed'
  // A starved run has few faults too, and long waits between them.
  const isSafe = safety.every(({ promise }) => promise === 'vacuous')
  const verdict = isSafe && isTooBusy ? 'machine-too-busy' : failed
  return { verdict, counts, verification, measures, failures }
}

function countAll(
  evidence: RunEvidence,
  verification: Verification,
  measures: readonly Measure[],
  lostByStream: number,
): Counts {
  const { faults, fromMs, toMs, refused } = evidence
  const minutes = (toMs - fromMs) / 60_000
  const { violations } = verification
  const grants = grantsOf(evidence.history.events)
  const voided = measures.filter(({ verdict }) => verdict === 'void')
  return {
    published: evidence.published.length,
    applied: evidence.effects.length,
    lost: violations.filter(({ kind }) => kind === 'input-lost').length,
    duplicated: violations.filter(({ kind }) => kind === 'input-doubled').length,
    staleAccepted: violations.filter(({ promise }) => promise === 'S3').length,
    staleRefused: refused.filter(({ reason }) => reason === 'stale').length,
    lostByStream,
    grants: grants.length,
    handOvers: grants.filter(({ record }) => record.how === 'hand-over').length,
    forced: grants.filter(({ record }) => record.how === 'forced').length,
    faults: faults.length,
    faultsPerMinute: Math.round((faults.length / minutes) * 10) / 10,
    overlapping:
      Math.round((faults.filter(({ over }) => over > 0).length / faults.length) * 100) / 100,
    leaderChanges: evidence.leaderChangesMs.length,
    drainedOverlapMs: verification.drainedOverlapMs,
    voided: voided.length,
    voidedShare: shareOf(voided.map(stretchOf), evidence),
  }
}

function stretchOf({ fromMs, tookMs, boundMs }: Measure) {
  return { fromMs, toMs: fromMs + (tookMs ?? boundMs) }
}

function safetyFailures(
  evidence: RunEvidence,
  { violations, gaps }: Verification,
  counts: Counts,
): readonly Failure[] {
  const failures: Failure[] = violations.map((violation) => ({
    ...{ promise: violation.promise, partition: violation.partition, atMs: violation.atMs },
    text: describeViolation(violation),
  }))
  failures.push(...gaps.map((gap) => plain('evidence', `incomplete: ${describeGap(gap)}`)))
  failures.push(...unsoundWrites(evidence), ...disorder(evidence), ...unsealedRefusals(evidence))
  for (const { node, code, atMs } of evidence.ends) {
    const text = `${node} ended by itself with ${code}`
    failures.push({ promise: 'process', partition: null, atMs, text })
  }
  for (const { kind, failure, fromMs } of evidence.faults) {
    if (failure === null) continue
    failures.push({ ...plain('harness', `fault ${kind} failed: ${failure}`), atMs: fromMs })
  }
  if (counts.staleRefused === 0) failures.push(plain('vacuous', 'no stale write met the fence'))
  if (counts.faultsPerMinute < FAULTS_PER_MINUTE_LEAST) {
    failures.push(plain('vacuous', `only ${counts.faultsPerMinute} faults a minute`))
  }
  return failures
}

/** S1, S2, S4 over each write of a record. */
function unsoundWrites({ history }: RunEvidence): readonly Failure[] {
  try {
    assertGrantsSound(history.events, { forced: true })
    return []
  } catch (error: unknown) {
    return [plain('S4', error instanceof Error ? error.message : String(error))]
  }
}

/** Effects of one key come in the order of the stream. */
function disorder({ effects }: RunEvidence): readonly Failure[] {
  const last = new Map<string, number>()
  const failures: Failure[] = []
  for (const { key, sequence, partition, input } of effects) {
    const before = last.get(key) ?? 0
    last.set(key, Math.max(before, sequence))
    if (sequence > before) continue
    const text = `order: ${input} of ${key} at ${sequence} was applied after ${before}`
    failures.push({ promise: 'order', partition, atMs: null, text })
  }
  return failures
}

/** S7: who works has sealed, so the fence never has to say that nothing was. */
function unsealedRefusals({ refused }: RunEvidence): readonly Failure[] {
  return refused
    .filter(({ reason }) => reason === 'unsealed')
    .map((line) => ({
      ...{ promise: 'S7', partition: line.token.partition, atMs: line.endMs },
      text: `S7: an effect under ${tokenId(line.token)} before its seal`,
    }))
}

function describeMeasure(measure: Measure): Failure {
  const { promise, partition, fromMs, tookMs, boundMs, isClean } = measure
  const took = tookMs === null ? 'never' : `${Math.round(tookMs)} ms`
  const where = partition === null ? '' : ` partition ${partition}`
  const bound = `${Math.round(boundMs)} ms${isClean ? '' : ', later faults included'}`
  const text = `${promise}${where}: took ${took}, bound ${bound}`
  return { promise, partition, atMs: fromMs, text }
}

function plain(promise: string, text: string): Failure {
  return { promise, partition: null, atMs: null, text }
}
