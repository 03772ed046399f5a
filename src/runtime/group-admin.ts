/**
 * Operators' changes of a group. Each is a compare-and-set on one key, idempotent (the same again answers
 * what stands), and answered once etcd acknowledged it. What must be carried out (rebalances, evictions)
 * the rebalancer sees in the records and does; nothing here waits for it.
 */
import type { GroupConfig, GroupSettings } from '../core/group-config.ts'
import { checkGroupConfig, decodeGroupConfig, encodeGroupConfig } from '../core/group-config.ts'
import type { GroupState } from '../core/group-state.ts'
import type { MemberName, PartitionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { OperatorMark, RebalanceKind, RebalanceRecord } from '../core/operator-records.ts'
import { decodeOperatorMark, encodeOperatorMark } from '../core/operator-records.ts'
import { isTenureError } from '../core/tenure-error.ts'
import type { Clock } from '../ports/clock.ts'
import type { By, Change, GroupAdmin, Refusal } from '../ports/group-access.ts'
import type { Random } from '../ports/random.ts'
import type { Decision, GroupChanges } from './group-changes.ts'
import { cancelChange, requestChange } from './group-rebalances.ts'

export type GroupAdminOptions = {
  readonly keys: GroupKeys
  readonly state: GroupState
  readonly clock: Clock
  readonly random: Random
  readonly changes: GroupChanges
  /** The highest incarnation that this process knows of, beyond what the records show. */
  readonly highestIncarnation?: () => number
}

const TEXT_LENGTH_MAX = 1000
const EVICTION_TRIES_MAX = 3

export class MirroredAdmin implements GroupAdmin {
  private readonly keys: GroupKeys
  private readonly state: GroupState
  private readonly clock: Clock
  private readonly random: Random
  private readonly changes: GroupChanges
  private readonly highestIncarnation: () => number

  constructor(options: GroupAdminOptions) {
    this.keys = options.keys
    this.state = options.state
    this.clock = options.clock
    this.random = options.random
    this.changes = options.changes
    this.highestIncarnation = options.highestIncarnation ?? (() => 0)
  }

  async requestRebalance(
    kind: RebalanceKind,
    by: By,
    id: string = this.random.operationId(),
  ): Promise<Change<{ readonly record: RebalanceRecord; readonly created: boolean }>> {
    const refusal = checkBy(by)
    if (refusal !== null) return refusal
    const { keys, state } = this
    return requestChange({ keys, state, id, kind, by, wallMs: this.clock.wallMs() }, this.changes)
  }

  async cancelRebalance(id: string): Promise<Change<RebalanceRecord>> {
    return cancelChange(this.keys, id, this.clock.wallMs(), this.changes)
  }

  async setFreeze(by: By & { readonly untilMs: number | null }): Promise<Change<OperatorMark>> {
    const { untilMs } = by
    if (untilMs !== null && untilMs <= this.clock.wallMs()) {
      return refuse('invalid-argument', 'untilMs lies in the past')
    }
    return this.setMark(this.keys.freeze, by, untilMs)
  }

  async clearFreeze(): Promise<Change<null>> {
    return this.clear(this.keys.freeze)
  }

  async setCordon(member: MemberName, by: By): Promise<Change<OperatorMark>> {
    if (!this.isKnown(member)) return unknownMember(member)
    return this.setMark(this.keys.cordon(member), by, null)
  }

  async clearCordon(member: MemberName): Promise<Change<null>> {
    return this.clear(this.keys.cordon(member))
  }

  async setDisabled(partition: PartitionId | null, by: By): Promise<Change<OperatorMark>> {
    const key = this.disabledKey(partition)
    return typeof key === 'string' ? this.setMark(key, by, null) : key
  }

  async clearDisabled(partition: PartitionId | null): Promise<Change<null>> {
    const key = this.disabledKey(partition)
    return typeof key === 'string' ? this.clear(key) : key
  }

  /** Puts the mark under the member's own lease; the rebalancer closes it once T has passed. */
  async evict(member: MemberName, by: By): Promise<Change<OperatorMark>> {
    const refusal = checkBy(by)
    if (refusal !== null) return refusal
    const live = this.keys.member(member)
    const mark = this.mark(by, null)
    // The map names the session; it must still be that one when the mark is put.
    for (let tries = 0; tries < EVICTION_TRIES_MAX; tries += 1) {
      const session = this.state.members.get(member)?.session
      if (session === undefined) return unknownMember(member)
      const change = await this.changes.change<OperatorMark | null>({
        key: this.keys.eviction(member),
        guards: [{ type: 'lease-equals', key: live, session }],
        alongside: [live],
        decide: (stands, [lives]) => {
          if (stands !== null) return answer(decodeOperatorMark(stands.value))
          if (lives?.session !== session) return answer(null)
          return { type: 'put', value: encodeOperatorMark(mark), session, result: mark }
        },
      })
      if (!change.ok) return change
      if (change.value !== null) return { ok: true, value: change.value }
    }
    return refuse('conflict', `the session of ${member} changed meanwhile`)
  }

  async raiseIncarnation(by: By): Promise<Change<number>> {
    const refusal = checkBy(by)
    if (refusal !== null) return refusal
    const nowSeconds = Math.floor(this.clock.wallMs() / 1000)
    return this.changes.change<number>({
      key: this.keys.incarnation,
      decide: (stands) => {
        if (stands === null) {
          return {
            type: 'answer',
            change: refuse('precondition-failed', 'the group has no incarnation'),
          }
        }
        const next = Math.max(nowSeconds, Number(stands.value) + 1, this.highestReported() + 1)
        return { type: 'put', value: String(next), result: next }
      },
    })
  }

  async changeConfig(settings: GroupSettings): Promise<Change<GroupConfig>> {
    return this.changes.change<GroupConfig>({
      key: this.keys.config,
      decide: (stands) => {
        if (stands === null) {
          return {
            type: 'answer',
            change: refuse('precondition-failed', 'the group has no settings'),
          }
        }
        const before = decodeGroupConfig(stands.value)
        const after = merge(before, settings)
        if ('ok' in after) return { type: 'answer', change: after }
        const value = encodeGroupConfig(after)
        return value === stands.value ? answer(after) : { type: 'put', value, result: after }
      },
    })
  }

  private async setMark(
    key: string,
    by: By,
    untilMs: number | null,
  ): Promise<Change<OperatorMark>> {
    const refusal = checkBy(by)
    if (refusal !== null) return refusal
    const mark = this.mark(by, untilMs)
    return this.changes.change<OperatorMark>({
      key,
      decide: (stands) => {
        const before = stands === null ? null : decodeOperatorMark(stands.value)
        if (before !== null && isSameMark(before, mark)) return answer(before)
        return { type: 'put', value: encodeOperatorMark(mark), result: mark }
      },
    })
  }

  private clear(key: string): Promise<Change<null>> {
    return this.changes.change<null>({
      key,
      decide: (stands) => (stands === null ? answer(null) : { type: 'delete', result: null }),
    })
  }

  private mark({ by, why }: By, untilMs: number | null): OperatorMark {
    return { by, why, atMs: this.clock.wallMs(), untilMs }
  }

  private disabledKey(partition: PartitionId | null): string | Refusal {
    if (partition === null) return this.keys.disabledGroup
    const exists =
      Number.isInteger(partition) && partition >= 0 && partition < this.state.partitions
    if (exists) return this.keys.disabledPartition(partition)
    return refuse('unknown-partition', `partition ${partition} does not exist`)
  }

  /** Live, cordoned, or named by some record: a name that never was is a slip of the pen. */
  private isKnown(member: MemberName): boolean {
    const { state } = this
    if (state.members.has(member) || state.cordons.has(member)) return true
    for (let partition = 0; partition < state.partitions; partition += 1) {
      if (state.lastOwner(partition)?.member === member) return true
      if (state.record(partition)?.record.previous?.member === member) return true
    }
    return false
  }

  private highestReported(): number {
    let highest = this.highestIncarnation()
    for (let partition = 0; partition < this.state.partitions; partition += 1) {
      highest = Math.max(highest, this.state.haltedThrough(partition) ?? 0)
    }
    return highest
  }
}

function merge(before: GroupConfig, settings: GroupSettings): GroupConfig | Refusal {
  for (const name of ['partitions', 'leaseTtlMs', 'fenced'] as const) {
    const asked = settings[name]
    if (asked === undefined || asked === before[name]) continue
    return refuse('invalid-config', `${name} is ${before[name]} for the life of the group`)
  }
  const after: GroupConfig = {
    ...before,
    marginMs: settings.marginMs ?? before.marginMs,
    restartGraceMs: settings.restartGraceMs ?? before.restartGraceMs,
    drain: { ...before.drain, ...settings.drain },
    acquire: { ...before.acquire, ...settings.acquire },
    settle: { ...before.settle, ...settings.settle },
    budget: { ...before.budget, ...settings.budget },
  }
  try {
    return checkGroupConfig(after)
  } catch (error) {
    if (isTenureError(error, 'invalid-config')) return refuse('invalid-config', error.message)
    throw error
  }
}

function checkBy({ by, why }: By): Refusal | null {
  if (by.length <= TEXT_LENGTH_MAX && why.length <= TEXT_LENGTH_MAX) return null
  return refuse('invalid-argument', `by and why take at most ${TEXT_LENGTH_MAX} characters each`)
}

function isSameMark(a: OperatorMark, b: OperatorMark): boolean {
  return a.by === b.by && a.why === b.why && a.untilMs === b.untilMs
}

function unknownMember(member: MemberName): Refusal {
  return refuse('unknown-member', `no member "${member}" is live or has owned a partition here`)
}

function answer<T>(value: T): Decision<T> {
  return { type: 'answer', change: { ok: true, value } }
}

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { ok: false, code, detail }
}
