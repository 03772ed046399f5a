/**
 * Everything that etcd holds of one group, folded from a list and the changes after it. It is one
 * mutable table, not a value per change: a group may have 100,000 partitions, and every process keeps
 * one (`partition-table.ts`). It is deterministic and does no I/O; `runtime/mirror.ts` feeds it.
 *
 * A record of an unknown version stops the process that reads it (it throws): acting on a map that one
 * cannot read would be guessing.
 */
import type { StoredRecord } from './commit.ts'
import type { GroupConfig } from './group-config.ts'
import { decodeGroupConfig } from './group-config.ts'
import type { MemberName, PartitionId, SessionId } from './ids.ts'
import type { GroupKeys, KeySubject } from './keys.ts'
import { keySubject } from './keys.ts'
import type { MemberRecord } from './member-record.ts'
import { decodeMemberRecord } from './member-record.ts'
import type { OperatorMark, RebalanceRecord } from './operator-records.ts'
import { decodeOperatorMark, decodeRebalance } from './operator-records.ts'
import type { Owner } from './partition-record.ts'
import { haltedThrough } from './partition-record.ts'
import type { Phase } from './partition-table.ts'
import { PartitionTable } from './partition-table.ts'
import type { Position } from './token.ts'
import type { KeyValue } from './transaction.ts'

/** What a batch of changes touched. */
export type GroupChange = {
  readonly partitions: readonly PartitionId[]
  readonly members: boolean
  /** Config, incarnation or disabled: whether a partition may have an owner, and how. */
  readonly settings: boolean
  /** Cordons or evictions: who may be granted partitions. */
  readonly receivers: boolean
  /** The rebalancer's election, freeze or rebalances, and what this build does not know: members don't look. */
  readonly plans: boolean
}

export type StateEvent =
  | { readonly type: 'put'; readonly entry: KeyValue }
  | {
      readonly type: 'delete'
      readonly key: string
      readonly modRevision: number
    }

type Touched = {
  partitions: Set<PartitionId>
  members: boolean
  settings: boolean
  receivers: boolean
  plans: boolean
}

export class GroupState {
  readonly keys: GroupKeys
  config: GroupConfig | null = null
  incarnation: number | null = null
  /** Live members by name. The session is the key's lease, whatever the value says. */
  readonly members = new Map<MemberName, MemberRecord>()
  readonly cordons = new Map<MemberName, OperatorMark>()
  readonly evictions = new Map<MemberName, OperatorMark>()
  readonly disabledPartitions = new Map<PartitionId, OperatorMark>()
  readonly rebalances = new Map<string, RebalanceRecord>()
  disabledGroup: OperatorMark | null = null
  freeze: OperatorMark | null = null
  rebalancer: { readonly session: SessionId; readonly value: string } | null = null
  /** The newest revision that this state includes. */
  revision = 0
  private readonly table = new PartitionTable()
  /** Of every key but the partitions'. */
  private readonly revisions = new Map<string, number>()

  constructor(keys: GroupKeys) {
    this.keys = keys
  }

  /** P, or 0 while the config is unknown. */
  get partitions(): number {
    return this.config?.partitions ?? 0
  }

  /** The record and its exact text; null: never granted. */
  record(partition: PartitionId): StoredRecord | null {
    return this.table.record(partition)
  }

  /** The record's exact text; null: never granted. */
  text(partition: PartitionId): string | null {
    return this.table.text(partition)
  }

  /** Null: never granted. */
  phase(partition: PartitionId): Phase | null {
    return this.table.phase(partition)
  }

  /** Of its last grant; null: never granted. */
  position(partition: PartitionId): Position | null {
    return this.table.position(partition)
  }

  /** The incarnation that must be exceeded before it is granted again; null: not halted. */
  haltedThrough(partition: PartitionId): number | null {
    if (this.table.phase(partition) !== 'halted') return null
    const record = this.table.record(partition)?.record
    return record?.phase === 'halted' ? haltedThrough(record) : null
  }

  /** Number of partitions that are being revoked. */
  get revoking(): number {
    return this.table.revoking
  }

  /** The mod revision of its record, 0 when there is none. */
  recordRevision(partition: PartitionId): number {
    return this.table.modRevision(partition)
  }

  /** The owner that its record names, alive or not. */
  owner(partition: PartitionId): Owner | null {
    return this.table.owner(partition)
  }

  /** Who owns it by its record, alive or not, or held it before it became vacant. */
  lastOwner(partition: PartitionId): Owner | null {
    return this.table.lastOwner(partition)
  }

  /** Who held it at the grant before this one, or null. */
  previousOwner(partition: PartitionId): Owner | null {
    return this.table.previousOwner(partition)
  }

  /** The owner whose session lives, or null. */
  liveOwner(partition: PartitionId): Owner | null {
    const owner = this.table.owner(partition)
    return owner !== null && this.isLive(owner) ? owner : null
  }

  isLive(owner: Owner): boolean {
    return this.members.get(owner.member)?.session === owner.session
  }

  isDisabled(partition: PartitionId): boolean {
    return this.disabledGroup !== null || this.disabledPartitions.has(partition)
  }

  /** Number of keys held, and the newest mod revision among them: what a resync compares. */
  summary(): { readonly count: number; readonly newestModRevision: number } {
    let newestModRevision = this.table.newestModRevision()
    for (const revision of this.revisions.values()) {
      if (revision > newestModRevision) newestModRevision = revision
    }
    return { count: this.revisions.size + this.table.size, newestModRevision }
  }

  /** The mod revision under which a key is known; 0 when absent. */
  modRevision(key: string): number {
    return this.revisionOf(keySubject(this.keys, key), key)
  }

  /** Folds changes in. Those at or below a key's known revision are old news and are skipped. */
  apply(events: readonly StateEvent[], revision: number): GroupChange {
    const touched = nothingTouched()
    for (const event of events) {
      const key = event.type === 'put' ? event.entry.key : event.key
      const modRevision = event.type === 'put' ? event.entry.modRevision : event.modRevision
      const subject = keySubject(this.keys, key)
      if (modRevision <= this.revisionOf(subject, key)) continue
      this.fold(subject, key, event.type === 'put' ? event.entry : null, touched)
    }
    if (revision > this.revision) this.revision = revision
    return { ...touched, partitions: [...touched.partitions] }
  }

  /** Replaces everything by a complete list, as after a compaction or a restore. */
  replace(entries: readonly KeyValue[], revision: number): GroupChange {
    const touched = nothingTouched()
    const kept = new Set(entries.map((entry) => entry.key))
    for (const key of [...this.revisions.keys()]) {
      if (!kept.has(key)) this.fold(keySubject(this.keys, key), key, null, touched)
    }
    for (const partition of [...this.table.partitions()]) {
      const key = this.keys.partition(partition)
      if (!kept.has(key)) this.fold({ type: 'partition', partition }, key, null, touched)
    }
    for (const entry of entries) {
      const subject = keySubject(this.keys, entry.key)
      if (this.isKnown(subject, entry)) continue
      this.fold(subject, entry.key, entry, touched)
    }
    this.revision = revision
    return { ...touched, partitions: [...touched.partitions] }
  }

  private revisionOf(subject: KeySubject, key: string): number {
    return subject.type === 'partition'
      ? this.table.modRevision(subject.partition)
      : (this.revisions.get(key) ?? 0)
  }

  /** After a restore one revision may stand for two values, so a partition's text is compared too. */
  private isKnown(subject: KeySubject, entry: KeyValue): boolean {
    if (subject.type !== 'partition') return false
    const { partition } = subject
    const isSameRevision = this.table.modRevision(partition) === entry.modRevision
    return isSameRevision && this.table.text(partition) === entry.value
  }

  private fold(subject: KeySubject, key: string, entry: KeyValue | null, touched: Touched): void {
    if (subject.type === 'partition') {
      if (entry === null) this.table.delete(subject.partition)
      else this.table.put(subject.partition, entry, entry.modRevision)
      touched.partitions.add(subject.partition)
      return
    }
    if (entry === null) this.revisions.delete(key)
    else this.revisions.set(key, entry.modRevision)
    if (subject.type === 'member') {
      this.foldMember(subject.member, entry)
      touched.members = true
      return
    }
    touched[CONCERNS[subject.type]] = true
    switch (subject.type) {
      case 'config':
        this.config = entry === null ? null : decodeGroupConfig(entry.value)
        this.table.reserve(this.partitions)
        return
      case 'incarnation':
        this.incarnation = entry === null ? null : Number(entry.value)
        return
      case 'rebalancer':
        this.rebalancer =
          entry?.session == null ? null : { session: entry.session, value: entry.value }
        return
      case 'freeze':
        this.freeze = mark(entry)
        return
      case 'disabled-group':
        this.disabledGroup = mark(entry)
        return
      case 'disabled-partition':
        setOrDelete(this.disabledPartitions, subject.partition, mark(entry))
        return
      case 'cordon':
        setOrDelete(this.cordons, subject.member, mark(entry))
        return
      case 'eviction':
        setOrDelete(this.evictions, subject.member, mark(entry))
        return
      case 'rebalance':
        setOrDelete(this.rebalances, subject.id, entry && decodeRebalance(entry.value))
        return
      case 'other':
        return
      default:
        subject satisfies never
    }
  }

  private foldMember(member: MemberName, entry: KeyValue | null): void {
    if (entry === null || entry.session === null) this.members.delete(member)
    else {
      this.members.set(member, {
        ...decodeMemberRecord(entry.value),
        session: entry.session,
      })
    }
  }
}

/**
 * Kept apart, since some are written again and again while partitions move: a member that looked at all
 * its partitions each time would do little else.
 */
const CONCERNS = {
  ...{ config: 'settings', incarnation: 'settings' },
  ...{ 'disabled-group': 'settings', 'disabled-partition': 'settings' },
  ...{ cordon: 'receivers', eviction: 'receivers' },
  ...{ rebalancer: 'plans', freeze: 'plans', rebalance: 'plans', other: 'plans' },
} as const satisfies Record<
  Exclude<KeySubject['type'], 'partition' | 'member'>,
  'settings' | 'receivers' | 'plans'
>

function nothingTouched(): Touched {
  return { partitions: new Set(), members: false, settings: false, receivers: false, plans: false }
}

function mark(entry: KeyValue | null): OperatorMark | null {
  return entry === null ? null : decodeOperatorMark(entry.value)
}

function setOrDelete<K, V>(map: Map<K, V>, key: K, value: V | null): void {
  if (value === null) map.delete(key)
  else map.set(key, value)
}
