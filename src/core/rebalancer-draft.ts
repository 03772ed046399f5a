/**
 * The inside of one step of the rebalancer: its state opened for change, what it looks at, and the
 * actions and the wake time gathered on the way. Nothing of it outlives the step.
 */
import type { Commit, Stamp } from './commit.ts'
import { mayHaveOwner, mayReceive } from './group-assignment.ts'
import type { GroupConfig } from './group-config.ts'
import type { GroupState } from './group-state.ts'
import type { MemberName, PartitionId } from './ids.ts'
import { operationId } from './ids.ts'
import { queueFacts } from './rebalancer-queue.ts'
import type {
  Balance,
  CommitSlot,
  Eviction,
  QueuedMove,
  RebalancerAction,
  RebalancerState,
  RebalancerStep,
  RebalancerView,
  Release,
  RequestMemory,
  Slot,
  TrackedMove,
} from './rebalancer-state.ts'
import type { RecordWrite } from './rebalancer-writes.ts'

/** How long a write rests after an answer that changed nothing. */
export const REST_MS = 500

export class RebalancerDraft {
  readonly session: RebalancerState['session']
  readonly moves: Map<PartitionId, TrackedMove>
  readonly commits: Map<PartitionId, CommitSlot>
  readonly slots: Map<string, Slot>
  readonly requests: Map<string, RequestMemory>
  readonly evictions: Map<MemberName, Eviction>
  queue: readonly QueuedMove[]
  balance: Balance
  drainsDueAtMs: number | null
  released: readonly Release[]
  readonly view: RebalancerView
  readonly group: GroupState
  readonly config: GroupConfig
  readonly nowMs: number
  readonly actions: RebalancerAction[] = []
  private wakeMs: number | null = null

  constructor(state: RebalancerState, view: RebalancerView, config: GroupConfig, nowMs: number) {
    this.session = state.session
    this.moves = new Map(state.moves)
    this.commits = new Map(state.commits)
    this.slots = new Map(state.slots)
    this.requests = new Map(state.requests)
    this.evictions = new Map(state.evictions)
    this.queue = state.queue
    this.balance = state.balance
    this.drainsDueAtMs = state.drainsDueAtMs
    this.released = state.released
    this.view = view
    this.group = view.group
    this.config = config
    this.nowMs = nowMs
  }

  close(): RebalancerStep {
    const { session, moves, commits, slots, requests, evictions } = this
    const { queue, balance, drainsDueAtMs, released } = this
    return {
      state: {
        session,
        moves,
        queue,
        commits,
        slots,
        balance,
        drainsDueAtMs,
        requests,
        evictions,
        released,
      },
      actions: this.actions,
      wakeAtMs: this.wakeMs,
    }
  }

  /** Wakes no later than this. */
  wakeAt(atMs: number): void {
    if (this.wakeMs === null || atMs < this.wakeMs) this.wakeMs = atMs
  }

  isBusy(slot: string): boolean {
    return this.slots.has(slot)
  }

  isCommitting(partition: PartitionId): boolean {
    return this.commits.has(partition)
  }

  /** The step's stamp, with an operation id of its own for each partition. */
  stamp(partition: PartitionId): Stamp {
    const { operation, atMs } = this.view.stamp
    const id = BigInt.asUintN(64, BigInt(`0x${operation}`) + BigInt(partition))
    return { operation: operationId(id.toString(16).padStart(16, '0')), atMs }
  }

  /** One commit per partition is under way at most. */
  commit(commit: Commit): void {
    this.commits.set(commit.partition, { untilMs: null, expected: commit.expected })
    this.actions.push({ type: 'commit', commit })
  }

  write(slot: string, write: RecordWrite): void {
    this.slots.set(slot, { untilMs: null })
    this.actions.push({ type: 'write', slot, write })
  }

  rest(slot: string, forMs: number): void {
    const untilMs = this.nowMs + forMs
    this.slots.set(slot, { untilMs })
    this.wakeAt(untilMs)
  }

  /** A commit whose answer left the record as it was rests before it is sent again. */
  restUnchanged(partition: PartitionId): void {
    const sent = this.commits.get(partition)
    if (sent === undefined || sent.untilMs !== null) return
    const untilMs = this.nowMs + REST_MS
    this.commits.set(partition, { untilMs, expected: sent.expected })
    this.wakeAt(untilMs)
  }

  /**
   * Forgets what has rested; wakes for what has not.
   * @returns the partitions whose commit has rested
   */
  endRests(): readonly PartitionId[] {
    this.endRestsOf(this.slots)
    return this.endRestsOf(this.commits)
  }

  private endRestsOf<Name>(slots: Map<Name, Slot>): readonly Name[] {
    const rested: Name[] = []
    for (const [name, { untilMs }] of slots) {
      if (untilMs === null) continue
      if (untilMs <= this.nowMs) {
        slots.delete(name)
        rested.push(name)
      } else this.wakeAt(untilMs)
    }
    return rested
  }

  /** The member lives and may be granted partitions. */
  canReceive(member: MemberName): boolean {
    const record = this.group.members.get(member)
    return record !== undefined && mayReceive(this.group, record)
  }

  /** The member lives and gives nothing up by itself: its partitions are the rebalancer's to move. */
  mayMoveFrom(member: MemberName): boolean {
    return this.group.members.get(member)?.state === 'active' && !this.group.evictions.has(member)
  }

  mayHaveOwner(partition: PartitionId): boolean {
    return mayHaveOwner(this.group, partition)
  }

  /** Members whose drain is running. */
  draining(): ReadonlySet<MemberName> {
    const draining = new Set<MemberName>()
    for (const { kind, state } of this.group.rebalances.values()) {
      if (kind.type === 'drain' && state === 'running') draining.add(kind.member)
    }
    return draining
  }

  /** Moves of this id that wait or are under way. */
  remaining(id: string): number {
    let remaining = queueFacts(this.queue).byId.get(id) ?? 0
    for (const move of this.moves.values()) if (move.id === id) remaining += 1
    return remaining
  }
}
