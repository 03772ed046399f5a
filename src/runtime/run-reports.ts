/** What the runs of a worker report: to its member, and to whoever listens. */
import type { GroupName, MemberName, PartitionId } from '../core/ids.ts'
import type { GiveUp, Grant } from '../core/ownership-state.ts'
import type { Position } from '../core/token.ts'
import type { Telemetry, WorkRefusal } from '../ports/telemetry.ts'
import type { Member } from './member.ts'
import type { RunReporter } from './partition-run.ts'

type RunEvent =
  | { readonly type: 'serving'; readonly acquireMs: number }
  | { readonly type: 'acquire-failed'; readonly detail: string; readonly retryMs: number }
  | { readonly type: 'run-failed'; readonly detail: string; readonly retryMs: number }
  | {
      readonly type: 'handler-failed'
      readonly handler: 'release' | 'lost'
      readonly detail: string
    }
  | {
      readonly type: 'draining'
      readonly to: MemberName | null
      readonly reason: GiveUp['reason']
      readonly inFlight: number
    }

export type ReportParts = {
  readonly group: GroupName
  readonly member: MemberName
  readonly telemetry: Telemetry
  readonly core: Member
}

/** Of one grant; answers of an earlier grant mean nothing to the member. */
export class RunReports implements RunReporter {
  private readonly parts: ReportParts
  private readonly partition: PartitionId
  private readonly grant: Grant

  constructor(parts: ReportParts, partition: PartitionId, grant: Grant) {
    this.parts = parts
    this.partition = partition
    this.grant = grant
  }

  acquired(): void {
    this.parts.core.acquired(this.partition, this.grant)
  }

  acquireFailed(error: unknown): void {
    const retryMs = this.parts.core.acquireFailed(this.partition, this.grant)
    this.record({ type: 'acquire-failed', detail: describe(error), retryMs })
  }

  serving(acquireMs: number): void {
    this.record({ type: 'serving', acquireMs })
  }

  runFailed(error: unknown, retryMs: number): void {
    this.record({ type: 'run-failed', detail: describe(error), retryMs })
  }

  handlerFailed(handler: 'release' | 'lost', error: unknown): void {
    this.record({ type: 'handler-failed', handler, detail: describe(error) })
  }

  draining({ to, reason }: GiveUp, inFlight: number): void {
    this.record({ type: 'draining', to, reason, inFlight })
  }

  drained(): void {
    this.parts.core.drained(this.partition, this.grant)
  }

  fenceAhead(highest: Position): void {
    this.parts.core.fenceAhead(this.partition, this.grant, highest)
  }

  refused(reason: WorkRefusal): void {
    const { group, member, telemetry } = this.parts
    telemetry.record({ type: 'work-refused', group, member, partition: this.partition, reason })
  }

  private record(event: RunEvent): void {
    const { group, member, telemetry } = this.parts
    const { incarnation, generation } = this.grant
    const whose = { group, member, partition: this.partition, incarnation, generation }
    // As in `GrantJournal`: faster than a spread.
    telemetry.record(Object.assign(whose, event))
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
