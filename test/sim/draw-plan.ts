/**
 * Draws a plan from a seed. Swarm testing: each seed has its own world and its own subset of faults with
 * their own rates, so that rare combinations come up somewhere and none of the common faults hides the
 * others everywhere.
 */
import { createSeededRandom, type SeededRandom } from '../../src/testing/index.ts'
import {
  FAULT_KIND_NAMES,
  type FaultKind,
  factsOf,
  PARTITION_PHASES,
  type PartitionPhase,
} from './fault-kinds.ts'
import {
  GENERATOR,
  type Plan,
  type PlannedFault,
  type Probe,
  type WorldLength,
  type WorldShape,
} from './plan.ts'

type Pace = {
  /** Faults go on for so long. */
  readonly faultsMs: readonly [number, number]
  /** On average between two faults. */
  readonly betweenMs: readonly [number, number]
  readonly workPauseMs: readonly [number, number]
}

const PACES: Readonly<Record<WorldLength, Pace>> = {
  short: { faultsMs: [60_000, 60_000], betweenMs: [3_000, 12_000], workPauseMs: [300, 1_500] },
  usual: { faultsMs: [120_000, 300_000], betweenMs: [3_000, 12_000], workPauseMs: [300, 1_500] },
  long: {
    faultsMs: [3_600_000, 3_600_000],
    betweenMs: [6_000, 40_000],
    // At most half as long again: each partition is to work within the bound of L4.
    workPauseMs: [2_000, 4_000],
  },
}
/** Before the first fault: the group finds itself. */
const QUIET_START_MS = 4_000
const AIMED_SHARE = 0.5
const HALTING_SHARE = 0.35
const AIMED_AT_HALTED_SHARE = 0.8
/** So many times as often as elsewhere, where a wipe is rare. */
const HALTING_WIPES = 2
const RESTORE_WEIGHT = 4
/** Until an operator raises the incarnation. */
const LONG_RESTORE_MS = [15_000, 50_000] as const
const PROBES: readonly Probe[] = ['none', 'kill', 'leave', 'join', 'move', 'restart', 'no-quorum']

export function drawPlan(seed: string, length: WorldLength = 'usual'): Plan {
  const pace = PACES[length]
  const random = createSeededRandom(`plan ${GENERATOR} ${seed}`)
  const shape = drawShape(random, pace)
  const faultsMs = between(random, pace.faultsMs)
  return {
    seed,
    generator: GENERATOR,
    shape,
    faultsMs,
    faults: drawFaults(random, shape, pace, faultsMs),
    probe: pick(random, PROBES),
  }
}

function drawShape(random: SeededRandom, { workPauseMs }: Pace): WorldShape {
  const fenced = random.fraction() < 0.65
  const policies = fenced
    ? (['fence', 'fence', 'wait', 'evict'] as const)
    : (['wait', 'evict'] as const)
  return {
    workers: 3 + random.integer(4),
    serves: 2,
    observers: 1 + random.integer(3),
    partitions: 4 + random.integer(21),
    resources: 1 + random.integer(2),
    fenced,
    drainPolicy: pick(random, policies),
    drainDeadlineMs: 1_000 + random.integer(6_000),
    leaseTtlMs: 4_000 + 1_000 * random.integer(3),
    restartGraceMs: random.fraction() < 0.2 ? 1_000 + random.integer(4_000) : 0,
    workPauseMs: between(random, workPauseMs),
  }
}

function drawFaults(
  random: SeededRandom,
  shape: WorldShape,
  pace: Pace,
  faultsMs: number,
): readonly PlannedFault[] {
  const weights = drawWeights(random, shape)
  // Halted partitions come of restores alone: some worlds are all about them.
  const isHalting = shape.fenced && random.fraction() < HALTING_SHARE
  if (isHalting) {
    weights.set('restore', RESTORE_WEIGHT)
    const wipes = weights.get('wipe')
    if (wipes !== undefined) weights.set('wipe', wipes * HALTING_WIPES)
  }
  const betweenMs = between(random, pace.betweenMs)
  const faults: PlannedFault[] = []
  let atMs = QUIET_START_MS
  for (;;) {
    // Sometimes two at the same moment, sometimes a long quiet.
    const share = random.fraction()
    atMs += share < 0.15 ? random.integer(200) : Math.round(betweenMs * 2 * random.fraction())
    if (atMs >= faultsMs) return faults
    const kind = drawKind(random, weights)
    const isLong = isHalting && kind === 'restore'
    const [shortestMs, longestMs] = isLong ? LONG_RESTORE_MS : factsOf(kind).forMs
    faults.push({
      atMs,
      kind,
      target: random.integer(1_000),
      other: random.integer(1_000),
      forMs: shortestMs + Math.round((longestMs - shortestMs) * random.fraction()),
      aim: isHalting && random.fraction() < AIMED_AT_HALTED_SHARE ? 'halted' : drawAim(random),
    })
  }
}

/** Each kind is in this world or not; those that are have rates of their own. */
function drawWeights(random: SeededRandom, shape: WorldShape): Map<FaultKind, number> {
  const weights = new Map<FaultKind, number>()
  const hostile = shape.fenced ? 0.4 : 0.15
  for (const kind of FAULT_KIND_NAMES) {
    const { weight = 1, honest = true } = factsOf(kind)
    const chance = honest ? 0.45 : hostile
    const isIn = random.fraction() < chance
    const rate = weight * (0.25 + random.fraction() * 2)
    const isRare = kind === 'restore' || kind === 'wipe'
    if (isIn) weights.set(kind, isRare ? rate / 2 : rate)
  }
  if (weights.size === 0) weights.set('kill', 1)
  return weights
}

function drawKind(random: SeededRandom, weights: ReadonlyMap<FaultKind, number>): FaultKind {
  let sum = 0
  for (const weight of weights.values()) sum += weight
  let left = random.fraction() * sum
  for (const [kind, weight] of weights) {
    left -= weight
    if (left < 0) return kind
  }
  return 'kill'
}

function drawAim(random: SeededRandom): PartitionPhase | null {
  if (random.fraction() >= AIMED_SHARE) return null
  return pick(random, PARTITION_PHASES)
}

/** A whole number from the lowest up to below the highest. */
function between(random: SeededRandom, [lowest, highest]: readonly [number, number]): number {
  return lowest + random.integer(Math.max(1, highest - lowest))
}

function pick<T>(random: SeededRandom, values: readonly T[]): T {
  return values[random.integer(values.length)] as T
}
