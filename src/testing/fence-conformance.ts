/**
 * The conformance suite of fences: run it against your own. At each seeded point an old owner is stopped in
 * the middle of a write, a new owner seals and writes, and the old one is let go. The result is a list of
 * named violations, empty for a fence that keeps S2, S3 and S7.
 *
 * The owners may live in this process (`ownerInProcess`), each with a client of its own, or be processes of
 * their own that are stopped by SIGSTOP (`startFenceOwner` here, `serveFenceOwner` in the program). Points
 * use partitions 0 .. points - 1 of the group `conformance`, so the resource must be a fresh one.
 *
 * Points take the resource's stops in turn, and the old owner stands still until the new one's seal is
 * answered or provably waits, so with each stop but `during`, which may come too late, the counts are as
 * many as there are points.
 *
 * @example
 * const report = await fenceConformance({
 *   seed: 1,
 *   makeResource: async () => ({
 *     owner: () => startFenceOwner({ program: 'test/fence/postgres-owner-program.ts', args: [url] }),
 *     applied: (partition) => readEffects(pool, partition),
 *     sealWaits: (partition) => isSealBlocked(pool, partition),
 *     restart: () => server.restart(),
 *   }),
 * })
 * assert.deepEqual(report.violations, [])
 * assert.ok(report.stops.before.sealedMeanwhile > 0)
 */
import type { PartitionId } from '../core/ids.ts'
import {
  type AppliedEffect,
  createCheckedCalls,
  type FenceViolation,
  type FenceViolationName,
} from './fence-conformance-calls.ts'
import type { FenceOwner, StopAt } from './fence-conformance-owner.ts'
import { type PointResult, type PointWorld, runPoint } from './fence-conformance-point.ts'
import { createSeededRandom } from './seeded-random.ts'

export interface FenceResource {
  /** A new owner with a client of its own; asked twice, and twice again after a restart. */
  owner(): Promise<FenceOwner>
  /** The effects that the resource holds for the partition, in the order in which it accepted them. */
  applied(partition: PartitionId): Promise<readonly AppliedEffect[]>
  /**
   * Where its owners can be stopped [everywhere]. Where the effect is no code of the worker's (a script, a
   * list of operations), `checked` and `written` are the resource's own affair and are never reached.
   */
  readonly stops?: readonly StopAt[]
  /**
   * True only when a seal of the partition waits for an effect that was admitted before it, and whose owner
   * stands still. Needed where an owner can be stopped inside an effect that keeps the fence in its place.
   */
  sealWaits?(partition: PartitionId): Promise<boolean>
  /** Ends the resource as a crash would and starts it on the same data. Owners are closed before. */
  restart?(): Promise<void>
  close?(): Promise<void>
}

export type FenceConformanceOptions = {
  readonly makeResource: () => Promise<FenceResource>
  /** [200] */
  readonly points?: number
  readonly seed: number | string
  /** After so long a new owner that a stopped one keeps waiting is a violation [5000]. */
  readonly heldUpAfterMs?: number
  /** Ends after the point at which this was found: for a fence that is broken on purpose. */
  readonly until?: FenceViolationName
}

export type StopCount = {
  /** Points at which the old owner stood still here. */
  readonly stopped: number
  /** Of those: the new owner's seal was answered meanwhile. */
  readonly sealedMeanwhile: number
  /** Of those: the new owner's seal waited for the old one's effect. */
  readonly sealWaited: number
}

export type FenceConformanceReport = {
  readonly violations: readonly FenceViolation[]
  /** Points that were run. */
  readonly points: number
  readonly stops: Readonly<Record<StopAt, StopCount>>
  /** False when the resource gives no `restart`: then nothing is known about its durability. */
  readonly restartChecked: boolean
}

const POINTS = 200
const HELD_UP_AFTER_MS = 5000
const STOPS: readonly StopAt[] = ['before', 'during', 'checked', 'written']
/** Numbers of the effects after a restart start here, above all of the points'. */
const AFTER_RESTART_NUMBER = 1000

export async function fenceConformance(
  options: FenceConformanceOptions,
): Promise<FenceConformanceReport> {
  const resource = await options.makeResource()
  const violations: FenceViolation[] = []
  const isFound = () => violations.some(({ name }) => name === options.until)
  let results: readonly PointResult[] = []
  let restartChecked = false
  try {
    results = await withOwners(resource, (old, next) =>
      runPoints({ old, next, resource, options, violations, isFound }),
    )
    if (resource.restart !== undefined && !isFound()) {
      await resource.restart()
      await withOwners(resource, (old, next) =>
        checkAfterRestart(resource, { old, next }, results, violations),
      )
      restartChecked = true
    }
  } finally {
    await resource.close?.()
  }
  return { violations, points: results.length, stops: countStops(results), restartChecked }
}

async function runPoints(run: {
  readonly old: FenceOwner
  readonly next: FenceOwner
  readonly resource: FenceResource
  readonly options: FenceConformanceOptions
  readonly violations: FenceViolation[]
  readonly isFound: () => boolean
}): Promise<readonly PointResult[]> {
  const { old, next, resource, options, violations, isFound } = run
  const random = createSeededRandom(options.seed)
  const stops = resource.stops ?? STOPS
  const world: PointWorld = {
    old,
    next,
    applied: (partition) => resource.applied(partition),
    sealWaits: async (partition) => (await resource.sealWaits?.(partition)) ?? false,
    heldUpAfterMs: options.heldUpAfterMs ?? HELD_UP_AFTER_MS,
  }
  const done: PointResult[] = []
  for (let point = 0; point < (options.points ?? POINTS) && !isFound(); point += 1) {
    const stopAt = stops[point % stops.length] ?? 'before'
    const ofPoint = random.fork(`point ${point}`)
    done.push(await runPoint(world, point, stopAt, ofPoint, reporter(violations, point)))
  }
  return done
}

function countStops(results: readonly PointResult[]): FenceConformanceReport['stops'] {
  const count = (at: StopAt): StopCount => {
    const here = results.filter(({ stoppedAt }) => stoppedAt === at)
    return {
      stopped: here.length,
      sealedMeanwhile: here.filter(({ seal }) => seal === 'answered').length,
      sealWaited: here.filter(({ seal }) => seal === 'waited').length,
    }
  }
  return {
    before: count('before'),
    during: count('during'),
    checked: count('checked'),
    written: count('written'),
  }
}

async function withOwners<T>(
  resource: FenceResource,
  use: (old: FenceOwner, next: FenceOwner) => Promise<T>,
): Promise<T> {
  const old = await resource.owner()
  try {
    const next = await resource.owner()
    try {
      return await use(old, next)
    } finally {
      await next.close()
    }
  } finally {
    await old.close()
  }
}

/** The high-water mark of every point still stands: the old owner is refused, the new one is not. */
async function checkAfterRestart(
  resource: FenceResource,
  owners: { readonly old: FenceOwner; readonly next: FenceOwner },
  results: readonly PointResult[],
  violations: FenceViolation[],
): Promise<void> {
  for (const [index, { oldToken, newToken }] of results.entries()) {
    const report = reporter(violations, index)
    const calls = createCheckedCalls(
      (partition) => resource.applied(partition),
      index,
      // What is wrong only after a restart was not kept through it.
      (name, detail) => report(name === 'call-failed' ? name : 'high-water-mark-lost', detail),
      AFTER_RESTART_NUMBER,
    )
    const lost = 'high-water-mark-lost'
    await calls.refusedWrite(owners.old, oldToken, 'stale', newToken, lost)
    await calls.refusedSeal(owners.old, oldToken, newToken, lost)
    await calls.acceptedWrite(owners.next, newToken)
  }
}

function reporter(violations: FenceViolation[], point: number) {
  return (name: FenceViolationName, detail: string) => {
    violations.push({ name, point, detail })
  }
}
