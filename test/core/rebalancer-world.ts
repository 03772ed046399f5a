/**
 * A group in a small etcd of its own, a rebalancer's machine that looks at it, and members that drain
 * and hand over when told to. Time stands still unless it is moved.
 */
import type { Commit } from '../../src/core/commit.ts'
import { elect, handOver, vacate } from '../../src/core/commit.ts'
import { commitBatch, commitOutcomes } from '../../src/core/commit-batch.ts'
import type { GroupSettings } from '../../src/core/group-config.ts'
import { encodeGroupConfig, newGroupConfig } from '../../src/core/group-config.ts'
import { GroupState } from '../../src/core/group-state.ts'
import type { MemberName, PartitionId, SessionId } from '../../src/core/ids.ts'
import { groupName, memberName, operationId, sessionId } from '../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../../src/core/keys.ts'
import { encodeMemberRecord, type MemberRecord } from '../../src/core/member-record.ts'
import type { RebalanceKind, RebalanceRecord } from '../../src/core/operator-records.ts'
import { encodeOperatorMark, encodeRebalance } from '../../src/core/operator-records.ts'
import { startRebalancer, stepRebalancer } from '../../src/core/rebalancer.ts'
import type {
  RebalancerAction,
  RebalancerEvent,
  RebalancerState,
  RebalancerStep,
  RebalancerView,
} from '../../src/core/rebalancer-state.ts'
import { writeTransaction } from '../../src/core/rebalancer-writes.ts'
import type { Transaction, TransactionResult } from '../../src/core/transaction.ts'
import { createEtcdData, scanKeys } from '../../src/testing/etcd-data.ts'
import { runTransaction } from '../../src/testing/etcd-transaction.ts'
import { hashOrder } from './assignor-world.ts'

export const WALL_MS = 1_764_440_000_000
export const ELECTION = sessionId('00000000000000e1')
const SUCCESSOR = sessionId('00000000000000e2')

export class RebalancerWorld {
  readonly keys = groupKeys(DEFAULT_KEY_PREFIX, groupName('orders'))
  readonly state = new GroupState(this.keys)
  nowMs = 0
  /** The machine, once elected. */
  rebalancer: RebalancerState | null = null
  wakeAtMs: number | null = null
  /** All actions of all steps. */
  readonly log: RebalancerAction[] = []
  /** Etcd requests of the rebalancer for commits, at 120 a request. */
  requests = 0
  private readonly data = createEtcdData()
  private sessions = 0
  private operations = 0
  private election: SessionId = ELECTION

  constructor(settings: GroupSettings = {}) {
    const config = newGroupConfig({ partitions: 12, ...settings })
    this.put(this.keys.config, encodeGroupConfig(config))
    this.put(this.keys.incarnation, '7')
  }

  // The group.

  join(name: string, fields: Partial<MemberRecord> = {}): MemberName {
    const member = memberName(name)
    this.sessions += 1
    const session = sessionId(String(this.sessions).padStart(16, '0'))
    const record: MemberRecord = {
      ...{ member, session, address: '', weight: 1, capacity: null, zone: '', labels: {} },
      ...{ state: 'active', versions: [1] },
      ...fields,
    }
    this.put(this.keys.member(member), encodeMemberRecord(record), session)
    return member
  }

  /** Its session ends: all keys under the lease go in one change. */
  die(name: string): readonly PartitionId[] {
    const session = this.sessionOf(name)
    const gone = [...scanKeys(this.data, '')].filter((entry) => entry.session === session)
    return this.run({
      compare: [],
      success: gone.map(({ key }) => ({ type: 'delete', key })),
      failure: [],
    }).touched
  }

  /** Grants the partitions by election. */
  own(name: string, ...partitions: readonly PartitionId[]): void {
    const member = memberName(name)
    const owner = { member, session: this.sessionOf(name) }
    for (const partition of partitions) {
      const stored = this.state.record(partition)
      this.commit(elect(partition, stored, owner, this.state.incarnation ?? 0, this.stamp()))
    }
  }

  /** The owner ends its drain: grants to the target, or vacates where the target is gone. */
  drain(partition: PartitionId): void {
    const stored = this.state.record(partition)
    if (stored?.record.phase !== 'revoking') throw new Error(`${partition} is not revoking`)
    const { to } = stored.record.move
    const session = to === null ? undefined : this.state.members.get(to)?.session
    const mayReceive = to !== null && session !== undefined && !this.state.cordons.has(to)
    this.commit(
      mayReceive
        ? handOver(partition, stored, { member: to, session }, 7, this.stamp())
        : vacate(partition, stored, this.stamp()),
    )
  }

  request(kind: RebalanceKind, id: string, fields: Partial<RebalanceRecord> = {}): void {
    const record: RebalanceRecord = {
      ...{ id, kind, state: 'requested', reason: 'because', by: 'ann', planned: null, moved: 0 },
      ...{ requestedAtMs: WALL_MS + this.nowMs, finishedAtMs: null, note: '' },
      ...fields,
    }
    this.put(this.keys.rebalance(id), encodeRebalance(record))
  }

  mark(key: string, untilMs: number | null = null, session?: SessionId): void {
    const mark = { by: 'ann', why: 'because', atMs: WALL_MS, untilMs }
    this.put(key, encodeOperatorMark(mark), session)
  }

  put(key: string, value: string, session?: SessionId): readonly PartitionId[] {
    const put = { type: 'put', key, value } as const
    const success = [session === undefined ? put : { ...put, session }]
    return this.run({ compare: [], success, failure: [] }).touched
  }

  remove(key: string): void {
    this.run({ compare: [], success: [{ type: 'delete', key }], failure: [] })
  }

  sessionOf(name: string): SessionId {
    const session = this.state.members.get(memberName(name))?.session
    if (session === undefined) throw new Error(`${name} is not live`)
    return session
  }

  owners(): readonly (string | null)[] {
    return this.partitions().map((partition) => this.state.liveOwner(partition)?.member ?? null)
  }

  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const owner of this.owners()) if (owner !== null) counts[owner] = (counts[owner] ?? 0) + 1
    return counts
  }

  revoking(): readonly PartitionId[] {
    return this.partitions().filter((p) => this.state.record(p)?.record.phase === 'revoking')
  }

  partitions(): readonly PartitionId[] {
    return Array.from({ length: this.state.partitions }, (_, partition) => partition)
  }

  // The rebalancer.

  /** Elects it; its first step's actions are not performed yet. */
  elect(election = ELECTION): RebalancerStep {
    this.election = election
    this.put(this.keys.rebalancer, '{}', election)
    return this.take(startRebalancer(election, this.view(), this.nowMs))
  }

  /** Another takes over, knowing nothing. */
  succeed(): RebalancerStep {
    return this.elect(SUCCESSOR)
  }

  step(
    event: RebalancerEvent = { type: 'changed', partitions: this.partitions() },
  ): RebalancerStep {
    if (this.rebalancer === null) throw new Error('not elected')
    return this.take(stepRebalancer(this.rebalancer, event, this.view(), this.nowMs))
  }

  /** Performs a step's actions against etcd and steps on with the answers, until nothing is left. */
  perform(first: RebalancerStep): void {
    let actions = first.actions
    while (actions.length > 0) {
      const commits = actions.flatMap((action) => (action.type === 'commit' ? [action.commit] : []))
      const next: RebalancerAction[] = []
      for (let from = 0; from < commits.length; from += 120) {
        this.requests += 1
        const partitions = this.send(commits.slice(from, from + 120))
        next.push(...this.step({ type: 'answered', partitions }).actions)
      }
      for (const action of actions) next.push(...this.performOther(action))
      actions = next
    }
  }

  /** Looks at every change, then at what the answers bring. */
  turn(): void {
    this.perform(this.step())
  }

  /** Moves time to what the machine waits for, step by step. */
  advance(durationMs: number): void {
    const endMs = this.nowMs + durationMs
    for (;;) {
      const wakeAtMs = this.wakeAtMs
      if (wakeAtMs === null || wakeAtMs > endMs) break
      this.nowMs = Math.max(this.nowMs, wakeAtMs)
      this.perform(this.step({ type: 'wake' }))
      if (this.wakeAtMs !== null && this.wakeAtMs <= wakeAtMs && wakeAtMs === this.nowMs) {
        // Time must go on, or the machine asks to be woken for ever.
        this.nowMs += 1
      }
    }
    this.nowMs = endMs
    this.turn()
  }

  /** Every member drains what it is asked for, until nothing moves any more. */
  converge(limitMs = 600_000): void {
    const endMs = this.nowMs + limitMs
    this.turn()
    while (this.nowMs < endMs) {
      const revoking = this.revoking()
      for (const partition of revoking) this.drain(partition)
      if (revoking.length > 0) this.turn()
      else if (this.wakeAtMs === null) return
      else this.advance(Math.max(1, this.wakeAtMs - this.nowMs))
    }
    throw new Error('it does not converge')
  }

  /** Sends one commit of a member, as etcd would run it; false: refused. */
  commit(commit: Commit): boolean {
    const batch = commitBatch(this.keys, [commit])
    const { result } = this.run(batch.transaction)
    return commitOutcomes(this.keys, batch, result)[0]?.type === 'done'
  }

  private performOther(action: RebalancerAction): readonly RebalancerAction[] {
    if (action.type === 'write') {
      const transaction = writeTransaction(this.keys, this.election, action.write)
      const { result } = this.run(transaction)
      const inView = result.succeeded && transaction.success[0]?.type === 'put'
      return this.step({ type: 'wrote', slot: action.slot, inView }).actions
    }
    if (action.type !== 'close-lease') return []
    const partitions = this.die(action.member)
    const wrote = this.step({ type: 'wrote', slot: action.slot, inView: false }).actions
    return [...wrote, ...this.step({ type: 'changed', partitions }).actions]
  }

  private send(commits: readonly Commit[]): readonly PartitionId[] {
    this.run(commitBatch(this.keys, commits).transaction)
    return commits.map(({ partition }) => partition)
  }

  private take(step: RebalancerStep): RebalancerStep {
    this.rebalancer = step.state
    this.wakeAtMs = step.wakeAtMs
    this.log.push(...step.actions)
    return step
  }

  private view(): RebalancerView {
    const wallMs = WALL_MS + this.nowMs
    const stamp = this.stamp()
    return {
      ...{ group: this.state, orderOf: hashOrder, ttlMs: 6000, wallMs, by: 'rebalancer', stamp },
    }
  }

  private stamp() {
    this.operations += 1
    const operation = operationId(String(this.operations).padStart(16, '0'))
    return { operation, atMs: WALL_MS + this.nowMs }
  }

  private run(transaction: Transaction): {
    readonly result: TransactionResult
    readonly touched: readonly PartitionId[]
  } {
    const outcome = runTransaction(this.data, () => true, transaction)
    if (!outcome.ok) throw new Error(outcome.detail)
    const { change, value } = outcome
    if (change === null) return { result: value, touched: [] }
    const { partitions } = this.state.apply(change.events, change.revision)
    return { result: value, touched: partitions }
  }
}
