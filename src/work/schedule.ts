/**
 * Scheduled jobs, each run by exactly one worker: a job belongs to the partition of its key, and the
 * partition's owner runs it at its due times. What `createScheduledJobs` returns is spread into
 * `startWorker`.
 *
 *   acquire   seal every resource, then load the partition's jobs with the due time of each one's last run
 *   run       earliest due first ──▶ run(job, dueMs) commits the effect and `lastDueMs` together ──▶ next
 *                                        │ throws: again after a growing wait, other jobs meanwhile
 *   lost      nothing: the next owner goes by what is stored
 *
 * Replay-safe: a due run has one idempotency key, `<job key>:<dueMs>`, whoever runs it. An owner that is
 * killed in the midst leaves it undone, or done and not told; the next runs it again under the same key,
 * and the resource commits it once. A paused owner's late commit is refused by the fence.
 *
 * Not promised: punctuality better than the wall clocks of the workers agree; that two runs of one job
 * are apart when a run takes longer than its interval (the next then begins at once).
 */
import type { PartitionId } from '../core/ids.ts'
import { partitionOf } from '../core/partition-key.ts'
import { createTenureError, isTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import type { Clock } from '../ports/clock.ts'
import { pause } from '../runtime/waiting.ts'
import type { Partition, PartitionHandlers, WorkLimits } from '../runtime/worker-options.ts'
import { afterRefusal, type BackOff, endsTheGrant } from './attempts.ts'
import { type Missed, nextRun } from './due.ts'
import { type FencedResult, requireOk, type Seal, sealOrThrow } from './fenced-results.ts'
import { Lanes } from './lanes.ts'
import { isOutage, OUTAGE_WAIT_MAX_MS } from './outages.ts'

export type ScheduledJob = {
  /** Unique in the group; decides the partition. */
  readonly key: string
  /** Due time of the last run that was committed, wall time; null for none. */
  readonly lastDueMs: number | null
}

export type DueRun<Job> = {
  readonly job: Job
  /** Wall time at which it was to run. */
  readonly dueMs: number
  /** `<job key>:<dueMs>`. */
  readonly idempotencyKey: string
  readonly token: Token
  readonly partition: Partition
  /** Fires when the partition is lost. */
  readonly signal: AbortSignal
}

export type ScheduledJobsOptions<Job extends ScheduledJob> = {
  /** P of the group. */
  readonly partitions: number
  readonly seal: Seal
  /** Jobs as the resource has them now; those of other partitions are passed over. Called after `seal`. */
  readonly load: (token: Token) => readonly Job[] | Promise<readonly Job[]>
  /** The job's first due time strictly after the given one (null: of all); null when there is none. */
  readonly nextDueMs: (job: Job, afterMs: number | null) => number | null
  /**
   * Commits the effect, its idempotency key and `lastDueMs` in one step, fenced by the token. What it
   * returns counts as `FencedResult` says: a refusal is not done.
   */
  readonly run: (due: DueRun<Job>) => FencedResult | Promise<FencedResult>
  /** Due times that passed while nobody ran. Default `each`. */
  readonly missed?: Missed
  /** Jobs run at once in a partition. Default 1. */
  readonly concurrency?: number
  /** Runs at once in the whole worker. Default 64. */
  readonly perWorker?: number
  /** How often jobs are loaded anew, for those that came or went. Default 30,000 ms. */
  readonly reloadMs?: number
  readonly backOff?: BackOff
  readonly onFailure?: (failure: { readonly due: DueRun<Job>; readonly error: unknown }) => void
}

/** A job as this grant knows it. */
type Seat<Job> = {
  job: Job
  lastDueMs: number | null
  isRunning: boolean
  failures: number
  /** Monotonic; not before. */
  notBeforeMs: number
}

export type ScheduleCursor<Job> = { readonly seats: Map<string, Seat<Job>>; loadedAtMs: number }

export type ScheduleHandlers<Job> = Required<
  Pick<PartitionHandlers<ScheduleCursor<Job>>, 'acquire' | 'run' | 'lost'>
> & { readonly limits: WorkLimits }

type Schedule<Job extends ScheduledJob> = {
  readonly options: ScheduledJobsOptions<Job>
  readonly clock: Clock
}

const PER_WORKER = 64
const RELOAD_MS = 30_000
const BACK_OFF_FIRST_MS = 200
const BACK_OFF_MAX_MS = 30_000

/** @throws TenureError `invalid-argument` for limits below 1. */
export function createScheduledJobs<Job extends ScheduledJob>(
  options: ScheduledJobsOptions<Job>,
  clock: Clock,
): ScheduleHandlers<Job> {
  const { partitions, concurrency = 1, perWorker = PER_WORKER, reloadMs = RELOAD_MS } = options
  for (const [name, value] of Object.entries({ partitions, concurrency, perWorker, reloadMs })) {
    if (value >= 1) continue
    throw createTenureError('invalid-argument', `${name} is ${value}, must be 1 or more`)
  }
  const schedule = { options, clock }
  return {
    limits: { perWorker },
    acquire: async (p) => {
      await sealOrThrow(options.seal, p)
      const cursor: ScheduleCursor<Job> = { seats: new Map(), loadedAtMs: 0 }
      await load(schedule, p, cursor)
      return cursor
    },
    run: (p, cursor) => runGrant(schedule, p, cursor),
    lost: () => {},
  }
}

/** Brings the seats to what the resource has. */
async function load<Job extends ScheduledJob>(
  { options, clock }: Schedule<Job>,
  p: Partition,
  cursor: ScheduleCursor<Job>,
): Promise<void> {
  const jobs = (await options.load(p.token)).filter(
    ({ key }) => partitionOf(key, options.partitions) === (p.id satisfies PartitionId),
  )
  const keys = new Set(jobs.map(({ key }) => key))
  for (const key of cursor.seats.keys()) if (!keys.has(key)) cursor.seats.delete(key)
  for (const job of jobs) {
    const seat = cursor.seats.get(job.key)
    if (seat === undefined) {
      const fresh = { isRunning: false, failures: 0, notBeforeMs: 0 }
      cursor.seats.set(job.key, { job, lastDueMs: job.lastDueMs, ...fresh })
      continue
    }
    seat.job = job
    // What was read before a run committed is older than what this grant knows.
    if (job.lastDueMs !== null) seat.lastDueMs = Math.max(job.lastDueMs, seat.lastDueMs ?? 0)
  }
  cursor.loadedAtMs = clock.monotonicMs()
}

async function runGrant<Job extends ScheduledJob>(
  schedule: Schedule<Job>,
  p: Partition,
  cursor: ScheduleCursor<Job>,
): Promise<void> {
  const { options, clock } = schedule
  const { concurrency = 1, reloadMs = RELOAD_MS } = options
  // Ends the wait for the next due time when a run has settled, or the drain begins.
  let settled = new AbortController()
  p.draining.addEventListener('abort', () => settled.abort(), { once: true })
  const lanes = new Lanes({
    runningMax: concurrency,
    heldMax: concurrency,
    onSettled: () => settled.abort(),
  })
  try {
    while (!p.draining.aborted && lanes.failure === null) {
      settled = new AbortController()
      const reloadInMs = cursor.loadedAtMs + reloadMs - clock.monotonicMs()
      if (reloadInMs <= 0) {
        await p.work(() => load(schedule, p, cursor))
        continue
      }
      const next = nextSeat(schedule, cursor)
      if (next !== null && next.inMs <= 0 && lanes.held < concurrency) {
        const { seat, dueMs } = next
        seat.isRunning = true
        lanes.add(seat.job.key, () => runOnce(schedule, p, seat, dueMs))
        continue
      }
      const waitMs =
        lanes.held < concurrency ? Math.min(reloadInMs, next?.inMs ?? reloadInMs) : reloadInMs
      if (!p.draining.aborted) await pause(clock, waitMs, settled.signal)
    }
  } finally {
    await lanes.idle()
  }
  if (lanes.failure === null) return
  const { error } = lanes.failure
  if (!isTenureError(error, 'fence-refused')) throw error
  await afterRefusal(clock, p, error)
}

/** The job that is to run first, and in how long; at or below 0: now. */
function nextSeat<Job extends ScheduledJob>(
  { options, clock }: Schedule<Job>,
  cursor: ScheduleCursor<Job>,
): { readonly seat: Seat<Job>; readonly dueMs: number; readonly inMs: number } | null {
  const nowMs = clock.wallMs()
  let first: { seat: Seat<Job>; dueMs: number; inMs: number } | null = null
  for (const seat of cursor.seats.values()) {
    if (seat.isRunning) continue
    const plan = (afterMs: number | null) => options.nextDueMs(seat.job, afterMs)
    const dueMs = nextRun(seat.lastDueMs, plan, options.missed ?? 'each', nowMs)
    if (dueMs === null) continue
    const inMs = Math.max(dueMs - nowMs, seat.notBeforeMs - clock.monotonicMs())
    if (first === null || inMs < first.inMs) first = { seat, dueMs, inMs }
  }
  return first
}

/** @throws TenureError where the grant is over, not where the job failed. */
async function runOnce<Job extends ScheduledJob>(
  { options, clock }: Schedule<Job>,
  p: Partition,
  seat: Seat<Job>,
  dueMs: number,
): Promise<void> {
  const { job } = seat
  const idempotencyKey = `${job.key}:${dueMs}`
  const due = { job, dueMs, idempotencyKey, token: p.token, partition: p, signal: p.signal }
  try {
    await p.work(async () => requireOk(await options.run(due), p))
    seat.lastDueMs = dueMs
    seat.failures = 0
  } catch (error: unknown) {
    if (endsTheGrant(error)) throw error
    const { firstMs = BACK_OFF_FIRST_MS, maxMs = BACK_OFF_MAX_MS } = options.backOff ?? {}
    const waitMaxMs = isOutage(error) ? Math.min(maxMs, OUTAGE_WAIT_MAX_MS) : maxMs
    const waitMs = Math.min(waitMaxMs, firstMs * 2 ** Math.min(seat.failures, 20))
    seat.failures += 1
    seat.notBeforeMs = clock.monotonicMs() + waitMs
    options.onFailure?.({ due, error })
  } finally {
    seat.isRunning = false
  }
}
