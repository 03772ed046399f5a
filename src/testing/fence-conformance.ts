/**
 * The conformance suite of fences: run it against your own. At each seeded point an old owner is stopped in
 * the middle of a write, a new owner seals and writes, and the old one is let go. The result is a list of
 * named violations, empty for a fence that keeps S2, S3 and S7.
 *
 * The owners may live in this process (`ownerInProcess`), each with a client of its own, or be processes of
 * their own that are stopped by SIGSTOP (`startFenceOwner` here, `serveFenceOwner` in the program). Points
 * use partitions 0 .. points - 1 of the group `conformance`, so the resource must be a fresh one.
 *
 * @example
 * const report = await fenceConformance({
 *   seed: 1,
 *   makeResource: async () => ({
 *     owner: () => startFenceOwner({ program: 'test/fence/postgres-owner-program.ts', args: [url] }),
 *     applied: (partition) => readEffects(pool, partition),
 *     restart: () => server.restart(),
 *   }),
 * })
 * assert.deepEqual(report.violations, [])
 * assert.ok(report.sealedMeanwhile > 0) // else no late write met a raised fence
 */
import type { PartitionId } from '../core/ids.ts'
import type { FenceOwner, StopAt } from './fence-conformance-owner.ts'
import {
  type AppliedEffect,
  createPoint,
  type FenceViolation,
  type PointResult,
  runPoint,
} from './fence-conformance-point.ts'
import { createSeededRandom } from './seeded-random.ts'

export interface FenceResource {
  /** A new owner with a client of its own; asked twice, and twice again after a restart. */
  owner(): Promise<FenceOwner>
  /** The effects that the resource holds for the partition, in the order in which it accepted them. */
  applied(partition: PartitionId): Promise<readonly AppliedEffect[]>
  /** Ends the resource as a crash would and starts it on the same data. Owners are closed before. */
  restart?(): Promise<void>
  close?(): Promise<void>
}

export type FenceConformanceOptions = {
  readonly makeResource: () => Promise<FenceResource>
  /** [200] */
  readonly points?: number
  readonly seed: number | string
}

export type FenceConformanceReport = {
  readonly violations: readonly FenceViolation[]
  readonly points: number
  /** Points at which the old owner stood still, by where. */
  readonly stopped: Readonly<Record<StopAt, number>>
  /** Points at which the new owner's seal was answered while the old one stood still. */
  readonly sealedMeanwhile: number
  /** False when the resource gives no `restart`: then nothing is known about its durability. */
  readonly restartChecked: boolean
}

const POINTS = 200
/** Numbers of the effects after a restart start here, above all of the points'. */
const AFTER_RESTART_NUMBER = 1000

export async function fenceConformance(
  options: FenceConformanceOptions,
): Promise<FenceConformanceReport> {
  const points = options.points ?? POINTS
  const random = createSeededRandom(options.seed)
  const resource = await options.makeResource()
  const violations: FenceViolation[] = []
  const stopped = { before: 0, during: 0, checked: 0, written: 0 }
  let sealedMeanwhile = 0
  try {
    const results = await withOwners(resource, async (old, next) => {
      const done: PointResult[] = []
      const world = { old, next, applied: (partition: PartitionId) => resource.applied(partition) }
      for (let point = 0; point < points; point += 1) {
        const report = reporter(violations, point)
        const result = await runPoint(world, point, random.fork(`point ${point}`), report)
        if (result.stoppedAt !== null) stopped[result.stoppedAt] += 1
        if (result.sealedMeanwhile) sealedMeanwhile += 1
        done.push(result)
      }
      return done
    })
    if (resource.restart !== undefined) {
      await resource.restart()
      await withOwners(resource, (old, next) => {
        return checkAfterRestart(resource, { old, next }, results, violations)
      })
    }
  } finally {
    await resource.close?.()
  }
  const restartChecked = resource.restart !== undefined
  return { violations, points, stopped, sealedMeanwhile, restartChecked }
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
    const point = createPoint(
      resource,
      index,
      // What is wrong only after a restart was not kept through it.
      (name, detail) => report(name === 'call-failed' ? name : 'high-water-mark-lost', detail),
      AFTER_RESTART_NUMBER,
    )
    const lost = 'high-water-mark-lost'
    await point.refusedWrite(owners.old, oldToken, 'stale', newToken, lost)
    await point.refusedSeal(owners.old, oldToken, newToken, lost)
    await point.acceptedWrite(owners.next, newToken)
  }
}

function reporter(violations: FenceViolation[], point: number) {
  return (name: FenceViolation['name'], detail: string) => {
    violations.push({ name, point, detail })
  }
}
