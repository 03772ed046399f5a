/**
 * Runs one plan: the world starts, meets its faults, heals, is probed, and stops; then the logs are
 * judged. Everything happens on virtual time, so the same plan takes the same steps every time.
 */
import { type EffectLine, tokenId } from '../../src/evidence/accept-log.ts'
import { describeViolation, type Violation } from '../../src/evidence/findings.ts'
import {
  type GrantEvent,
  grantId,
  grantsOf,
  previousToken,
} from '../../src/evidence/history-log.ts'
import { verifyAccepts } from '../../src/evidence/verify-accepts.ts'
import { effectsByToken, verifyHandOvers } from '../../src/evidence/verify-hand-overs.ts'
import { verifyInputs } from '../../src/evidence/verify-inputs.ts'
import type { Breach } from './breach.ts'
import type { FaultKind } from './fault-kinds.ts'
import { type Coverage, FaultSchedule } from './fault-schedule.ts'
import { heal, until } from './healing.ts'
import { LivenessChecker } from './liveness-checker.ts'
import type { Plan } from './plan.ts'
import { probe } from './probes.ts'
import type { TraceEntry } from './trace.ts'
import { World } from './world.ts'

export type RunFigures = {
  readonly simulatedMs: number
  /** Things that happened: timers of the world that fired. */
  readonly events: number
  readonly faults: Partial<Record<FaultKind, number>>
  readonly coverage: Coverage
  readonly ownershipChanges: number
  readonly grants: number
  readonly admissions: number
  readonly acceptedEffects: number
  readonly refusedEffects: number
  readonly mapComparisons: number
  readonly livenessLooks: number
  /** Most writes of one record from the healing until all was well. */
  readonly recoveryWritesMax: number
}

export type RunResult = {
  readonly breach: Breach | null
  readonly traceHash: string
  readonly figures: RunFigures
  readonly trace: readonly TraceEntry[]
}

const SNAPSHOT_EVERY_MS = 9_000
const SNAPSHOTS_KEPT = 3

export async function runPlan(plan: Plan): Promise<RunResult> {
  const world = new World(plan)
  const { box, clock } = world.base
  const faults = new FaultSchedule(world)
  const liveness = new LivenessChecker(world, faults)
  const uncaught = (error: unknown) => box.crash(error, 'nobody caught')
  process.on('unhandledRejection', uncaught)
  try {
    if (plan.faults.some(({ kind }) => kind === 'restore')) takeSnapshots(world)
    world.start()
    faults.start(plan.faults)
    liveness.start()
    await clock.runUntil(() => box.first !== null, { limitMs: plan.faultsMs })
    liveness.stop()
    if (box.first === null) await heal(world, faults, liveness.boundMs)
    await probe(world, liveness.boundMs)
    if (box.first === null) await stopAll(world)
  } catch (error: unknown) {
    box.crash(error, 'the run')
  } finally {
    process.off('unhandledRejection', uncaught)
  }
  judgeLogs(world)
  return resultOf(world, faults, liveness)
}

/** A clean stop: every worker drains, hands over and ends. */
async function stopAll(world: World): Promise<void> {
  const { base, members, plan } = world
  base.trace.note(null, 'all stop')
  base.isClosing = true
  for (const member of members) member.stop()
  const limitMs = plan.shape.drainDeadlineMs + plan.shape.leaseTtlMs + 15_000
  if (await until(world, () => members.every(({ life }) => life === null), limitMs)) return
  const left = members.filter(({ life }) => life !== null).map(({ name }) => name)
  base.box.report('L3', null, `${left.join()} did not end within ${limitMs} ms after the stop`)
}

function takeSnapshots(world: World): void {
  const { clock, etcd, isClosing } = world.base
  if (isClosing) return
  if (!world.isRewound && world.truth.config !== null) {
    world.snapshots.push(etcd.snapshot())
    if (world.snapshots.length > SNAPSHOTS_KEPT) world.snapshots.shift()
  }
  clock.schedule(SNAPSHOT_EVERY_MS, () => takeSnapshots(world))
}

/** What the accept log and the history prove or disprove once all is over: S3, S10 and S11. */
function judgeLogs(world: World): void {
  const { accepts, history, place, plan, base } = world
  const effects = accepts.filter((line): line is EffectLine => line.type === 'effect')
  const grants = grantsOf(history)
  const violations: Violation[] = []
  if (plan.shape.fenced) {
    const granted = new Set(grants.map(grantId))
    violations.push(...verifyAccepts(accepts, granted, () => false).violations)
    violations.push(...verifyInputs(place.inputs.acknowledged, effects))
  } else {
    const applied = new Set(effects.map(({ input }) => input))
    for (const input of place.inputs.acknowledged) {
      if (!applied.has(input)) base.box.report('S11', null, `input ${input} has no effect`)
    }
  }
  if (world.isHonest || plan.shape.fenced) {
    const drained = grants.filter((grant) => isDrained(world, grant))
    violations.push(...verifyHandOvers(drained, effectsByToken(effects), true).violations)
  }
  for (const violation of violations) {
    base.box.report(violation.promise, violation.partition, describeViolation(violation))
  }
}

/** An owner that lost its work (as after a restore) may still be the one that grants anew. */
function isDrained(world: World, grant: GrantEvent): boolean {
  if (grant.record.how !== 'hand-over') return false
  const token = previousToken(grant)
  return token !== null && !world.work.lostTokens.has(tokenId(token))
}

function resultOf(world: World, faults: FaultSchedule, liveness: LivenessChecker): RunResult {
  const { base, accepts } = world
  const effects = accepts.filter(({ type }) => type === 'effect') as readonly EffectLine[]
  const refused = effects.filter(({ outcome }) => outcome === 'refused').length
  for (const { token, input, outcome, endMs } of effects) {
    base.trace.noteAt(endMs, token.partition, `effect ${input} ${outcome} under ${tokenId(token)}`)
  }
  return {
    breach: base.box.first,
    traceHash: base.trace.hash(),
    trace: base.trace.entries,
    figures: {
      simulatedMs: world.nowMs,
      events: base.clock.steps,
      faults: faults.struck,
      coverage: faults.coverage,
      ownershipChanges: world.ownershipChanges,
      grants: world.records.grants,
      admissions: world.work.admissions,
      acceptedEffects: effects.length - refused,
      refusedEffects: refused,
      mapComparisons: world.maps.comparisons,
      livenessLooks: liveness.looks,
      recoveryWritesMax: world.recoveryWritesMax,
    },
  }
}
