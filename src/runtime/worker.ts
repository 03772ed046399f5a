/**
 * The worker: a member together with the author's handlers. It turns the member's orders into partition
 * runs, answers keyed calls, and ends in one of two ways:
 *
 *   stop (SIGTERM) ──▶ leaving: every partition drained and handed over ──▶ session closed ──▶ done
 *   stop again, or the drain deadline overrun ──▶ session closed at once, partitions lost ──▶ done
 *   evicted, name in use, broken invariant ──▶ session closed, partitions lost ──▶ done rejects
 */
import type { GroupState } from '../core/group-state.ts'
import type { GroupName, MemberName, PartitionId, SessionId } from '../core/ids.ts'
import type { GiveUp, Grant } from '../core/ownership-state.ts'
import { partitionOf } from '../core/partition-key.ts'
import type { TenureError } from '../core/tenure-error.ts'
import { isTenureError } from '../core/tenure-error.ts'
import type { Position } from '../core/token.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { LossCause, Telemetry } from '../ports/telemetry.ts'
import { createDeferred } from './deferred.ts'
import { Gate } from './gate.ts'
import type { Member } from './member.ts'
import type { PartitionHost } from './partition-host.ts'
import { PartitionRun } from './partition-run.ts'
import { type ReportParts, RunReports } from './run-reports.ts'
import type { SessionDriver } from './session-driver.ts'
import { WorkSlots } from './work-slots.ts'
import type {
  HeldPartition,
  Partition,
  PartitionHandlers,
  Worker,
  WorkLimits,
  WorkOutcome,
} from './worker-options.ts'

/** Says over the broadcast which partitions are being served; a hint. */
export type ServingAnnouncer = {
  /** What follows is said in the name of this session. */
  sessionLive(session: SessionId): void
  announce(partition: PartitionId, position: Position, serving: boolean): void
}

export type WorkerRuntimeOptions<Cursor> = {
  readonly group: GroupName
  readonly member: MemberName
  readonly state: GroupState
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly handlers: PartitionHandlers<Cursor>
  readonly limits: WorkLimits
  readonly serving: ServingAnnouncer
  /** Makes the member that this worker hosts; called once. */
  readonly createMember: (host: PartitionHost, failed: (error: TenureError) => void) => Member
  /** Closes what the composition opened for this worker; after the session. */
  readonly close: () => Promise<void>
}

const NOTHING_BEFORE = Promise.resolve()

export class WorkerRuntime<Cursor> implements Worker, PartitionHost {
  readonly group: GroupName
  readonly member: MemberName
  readonly ready: Promise<void>
  readonly done: Promise<void>
  private readonly options: WorkerRuntimeOptions<Cursor>
  private readonly core: Member
  private readonly reportParts: ReportParts
  private readonly slots: WorkSlots
  private readonly runs = new Map<PartitionId, PartitionRun<Cursor>>()
  /** Runs not yet settled, by partition: the next grant waits for them. */
  private readonly endings = new Map<PartitionId, Promise<void>>()
  private readonly becameReady = createDeferred<void>()
  private readonly becameDone = createDeferred<void>()
  private stopping: Promise<void> | null = null
  private force: (() => void) | null = null
  private failure: TenureError | null = null

  constructor(options: WorkerRuntimeOptions<Cursor>) {
    this.options = options
    this.group = options.group
    this.member = options.member
    this.ready = this.becameReady.promise
    this.done = this.becameDone.promise
    this.slots = new WorkSlots(options.limits.perWorker ?? Number.POSITIVE_INFINITY)
    this.core = options.createMember(this, (error) => this.fail(error))
    const { group, member, telemetry } = options
    this.reportParts = { group, member, telemetry, core: this.core }
  }

  partitions(): readonly HeldPartition[] {
    return [...this.runs.values()]
      .map((run) => ({
        partition: run.id,
        token: run.token,
        status: heldStatus(run.gate),
        inFlight: run.inFlight,
      }))
      .sort((a, b) => a.partition - b.partition)
  }

  /** A broadcast named this position; a hint that may close a gate and never opens one. */
  heard(partition: PartitionId, position: Position): void {
    this.core.heard(partition, position)
  }

  get unsettled(): number {
    return this.endings.size
  }

  deadlineInMs(): number {
    const { live } = this.core
    return live === null ? 0 : Math.max(0, live.deadlineMs - this.options.clock.monotonicMs())
  }

  async work<T>(
    key: string,
    fn: (partition: Partition) => T | Promise<T>,
  ): Promise<WorkOutcome<T>> {
    const partition = partitionOf(key, this.options.state.partitions)
    const run = this.runs.get(partition)
    if (run === undefined) return this.elsewhere(partition)
    try {
      return { ok: true, value: await run.work(fn) }
    } catch (error: unknown) {
      const refused =
        isTenureError(error, 'work-refused') && error.details['partition'] === partition
      if (!refused) throw error
      return this.elsewhere(partition)
    }
  }

  stop(options: { readonly force?: boolean } = {}): Promise<void> {
    this.stopping ??= this.shutDown()
    if (options.force === true) this.force?.()
    return this.done
  }

  // PartitionHost: what the member orders.

  sessionLive(session: SessionDriver): void {
    this.options.serving.sessionLive(session.session)
    this.becameReady.resolve()
  }

  begin(partition: PartitionId, grant: Grant, session: SessionDriver): void {
    const { group, clock, handlers, limits } = this.options
    const { incarnation, generation, owner } = grant
    const reporter = new RunReports(this.reportParts, partition, grant)
    const run = new PartitionRun<Cursor>({
      token: { group, partition, incarnation, generation, session: owner.session },
      grant,
      gate: new Gate(session, clock, limits.perPartition ?? Number.POSITIVE_INFINITY),
      handlers,
      slots: this.slots,
      clock,
      reporter,
      after: this.endings.get(partition) ?? NOTHING_BEFORE,
    })
    this.runs.set(partition, run)
    const ending = run.settled
    this.endings.set(partition, ending)
    void ending.then(() => {
      if (this.endings.get(partition) === ending) this.endings.delete(partition)
    })
  }

  open(partition: PartitionId): void {
    const run = this.runs.get(partition)
    run?.gate.become('open')
    if (run !== undefined) this.options.serving.announce(partition, run.grant, true)
  }

  suspend(partition: PartitionId): void {
    this.runs.get(partition)?.gate.become('suspect')
  }

  drain(partition: PartitionId, giveUp: GiveUp): void {
    const run = this.runs.get(partition)
    if (run === undefined) return
    this.options.serving.announce(partition, run.grant, false)
    run.drain(giveUp)
  }

  released(partition: PartitionId, grant: Grant): void {
    const run = this.runs.get(partition)
    if (run?.grant.generation === grant.generation) this.runs.delete(partition)
  }

  lose(partition: PartitionId, cause: LossCause): void {
    const run = this.runs.get(partition)
    if (run === undefined) return
    this.runs.delete(partition)
    this.options.serving.announce(partition, run.grant, false)
    run.lose(cause)
  }

  proved(): void {
    for (const run of this.runs.values()) run.gate.wake()
  }

  // Ends.

  private async shutDown(): Promise<void> {
    const { clock, state } = this.options
    const forced = createDeferred<void>()
    this.force = () => forced.resolve()
    const deadlineMs = state.config?.drain.deadlineMs ?? 0
    const timer: Timer = clock.schedule(deadlineMs, () => forced.resolve())
    await Promise.race([this.core.leave(), forced.promise])
    timer.cancel()
    await this.end('closed')
  }

  private fail(error: TenureError): void {
    if (this.failure !== null) return
    this.failure = error
    this.becameReady.reject(error)
    this.stopping ??= this.end('closed')
  }

  private async end(cause: 'closed'): Promise<void> {
    const closing = this.core.close(cause)
    for (const partition of [...this.runs.keys()]) this.lose(partition, 'stopped')
    await closing
    await this.options.close()
    const failure = this.failure
    if (failure === null) this.becameDone.resolve()
    else this.becameDone.reject(failure)
  }

  // Small parts.

  private elsewhere(partition: PartitionId): WorkOutcome<never> {
    const { state } = this.options
    const owner = state.liveOwner(partition)
    if (owner === null) return { ok: false, partition, owner: null }
    const address = state.members.get(owner.member)?.address ?? ''
    return { ok: false, partition, owner: { member: owner.member, address } }
  }
}

function heldStatus(gate: Gate): HeldPartition['status'] {
  switch (gate.status) {
    case 'open':
      return 'serving'
    case 'acquiring':
    case 'suspect':
    case 'draining':
      return gate.status
    case 'released':
    case 'lost':
      return 'draining'
    default:
      return gate.status satisfies never
  }
}
