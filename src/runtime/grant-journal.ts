/** Records what happens to a member's grants: one event per transition, from one place. */
import type { GroupName, MemberName, PartitionId } from '../core/ids.ts'
import type { Grant, Seat } from '../core/ownership-state.ts'
import type { AlarmCode, LossCause, Telemetry } from '../ports/telemetry.ts'

export type GrantNote =
  | { readonly type: 'granted'; readonly how: Grant['how']; readonly ownerlessMs: number | null }
  | { readonly type: 'reopened' }
  | { readonly type: 'suspected'; readonly why: 'higher-generation' | 'changed-record' }
  | {
      readonly type: 'released'
      readonly to: MemberName | null
      readonly drainMs: number
      readonly handOffMs: number
    }
  | { readonly type: 'drain-overdue'; readonly policy: 'wait' | 'fence' | 'evict' }
  | { readonly type: 'lost'; readonly cause: LossCause }

export class GrantJournal {
  private readonly group: GroupName
  private readonly member: MemberName
  private readonly telemetry: Telemetry

  constructor(options: {
    readonly group: GroupName
    readonly member: MemberName
    readonly telemetry: Telemetry
  }) {
    this.group = options.group
    this.member = options.member
    this.telemetry = options.telemetry
  }

  /** Of the grant that the seat holds; nothing when it holds none. */
  note(partition: PartitionId, seat: Seat, what: GrantNote): void {
    const { now } = seat
    if (now.status === 'absent' || now.status === 'campaigning') return
    const { incarnation, generation } = now.grant
    const { group, member } = this
    const whose = { group, member, partition, incarnation, generation }
    // A spread of so many different shapes takes five times as long.
    this.telemetry.record(Object.assign(whose, what))
  }

  alarm(code: AlarmCode, detail: string): void {
    this.telemetry.record({ type: 'alarm', group: this.group, code, detail })
  }
}
