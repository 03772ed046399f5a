/**
 * What a step of an ownership machine may know of the group, read off the map when the machine asks.
 * Most steps ask for little, and one in several thousand partitions' steps must not make what it leaves:
 * an operation id is drawn only for a step that writes or asks, once.
 */
import type { Stamp } from '../core/commit.ts'
import { mayReceive } from '../core/group-assignment.ts'
import type { DrainPolicy } from '../core/group-config.ts'
import type { GroupState } from '../core/group-state.ts'
import type { MemberName, PartitionId } from '../core/ids.ts'
import type { OwnershipContext } from '../core/ownership-state.ts'
import type { Owner } from '../core/partition-record.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'

export type StepParts = {
  readonly state: GroupState
  readonly member: MemberName
  readonly random: Random
  readonly clock: Clock
  /** This member is giving everything up, so it grants itself nothing. */
  isLeaving(): boolean
}

/** Valid during one step only: the map goes on. */
export class StepContext implements OwnershipContext {
  readonly partition: PartitionId
  readonly me: Owner | null
  private readonly parts: StepParts
  private drawn: Stamp | null = null

  constructor(partition: PartitionId, me: Owner | null, parts: StepParts) {
    this.partition = partition
    this.me = me
    this.parts = parts
  }

  get incarnation(): number {
    return this.parts.state.incarnation ?? 0
  }

  get fenced(): boolean {
    return this.parts.state.config?.fenced ?? false
  }

  get drainDeadlineMs(): number {
    return this.parts.state.config?.drain.deadlineMs ?? Number.POSITIVE_INFINITY
  }

  get drainPolicy(): DrainPolicy {
    return this.parts.state.config?.drain.policy ?? 'wait'
  }

  get acquireDeadlineMs(): number {
    return this.parts.state.config?.acquire.deadlineMs ?? Number.POSITIVE_INFINITY
  }

  granteeOf(to: MemberName): Owner | null {
    const { state, member } = this.parts
    const record = state.members.get(to)
    if (record === undefined || !mayReceive(state, record)) return null
    if (to === member && this.parts.isLeaving()) return null
    return { member: record.member, session: record.session }
  }

  get stamp(): Stamp {
    const { random, clock } = this.parts
    this.drawn ??= { operation: random.operationId(), atMs: clock.wallMs() }
    return this.drawn
  }
}
