/**
 * What etcd really holds, followed change by change inside the step that makes it: sessions, records,
 * operators' marks. The checkers judge by this, never by what a process believes.
 */
import { decodeGroupConfig, type GroupConfig } from '../../src/core/group-config.ts'
import type { GroupKeys } from '../../src/core/keys.ts'
import { keySubject } from '../../src/core/keys.ts'
import { decodePartitionRecord, type PartitionRecord } from '../../src/core/partition-record.ts'
import type { KeyValue } from '../../src/core/transaction.ts'
import type { WatchEvent } from '../../src/ports/store.ts'

export type KnownRecord = { readonly record: PartitionRecord; readonly revision: number }

export class EtcdTruth {
  readonly keys: GroupKeys
  /** Session by member. */
  readonly sessions = new Map<string, string>()
  readonly records = new Map<number, KnownRecord>()
  readonly cordons = new Set<string>()
  readonly disabled = new Set<number | 'group'>()
  readonly evictions = new Set<string>()
  isFrozen = false
  rebalancer: string | null = null
  incarnation = 0
  config: GroupConfig | null = null

  constructor(keys: GroupKeys) {
    this.keys = keys
  }

  /** Starts over from what stands in etcd, as after a restore. */
  reload(entries: readonly KeyValue[]): void {
    this.sessions.clear()
    this.records.clear()
    this.cordons.clear()
    this.disabled.clear()
    this.evictions.clear()
    this.isFrozen = false
    this.rebalancer = null
    this.incarnation = 0
    this.config = null
    for (const entry of entries) this.take({ type: 'put', entry })
  }

  take(event: WatchEvent): void {
    const put = event.type === 'put' ? event.entry : null
    const subject = keySubject(this.keys, put === null ? (event as { key: string }).key : put.key)
    switch (subject.type) {
      case 'member':
        if (put === null) this.sessions.delete(subject.member)
        else this.sessions.set(subject.member, put.session ?? '')
        return
      case 'partition':
        if (put === null) this.records.delete(subject.partition)
        else {
          const record = decodePartitionRecord(put.value, subject.partition)
          this.records.set(subject.partition, { record, revision: put.modRevision })
        }
        return
      case 'rebalancer':
        this.rebalancer = put?.session ?? null
        return
      case 'incarnation':
        this.incarnation = put === null ? 0 : Number(put.value)
        return
      case 'config':
        this.config = put === null ? null : decodeGroupConfig(put.value)
        return
      case 'freeze':
        this.isFrozen = put !== null
        return
      case 'cordon':
        toggle(this.cordons, subject.member as string, put !== null)
        return
      case 'eviction':
        toggle(this.evictions, subject.member as string, put !== null)
        return
      case 'disabled-group':
        toggle(this.disabled, 'group' as const, put !== null)
        return
      case 'disabled-partition':
        toggle(this.disabled, subject.partition, put !== null)
        return
      case 'rebalance':
      case 'other':
        return
      default:
        subject satisfies never
    }
  }

  isAlive(member: string, session: string): boolean {
    return this.sessions.get(member) === session
  }

  /** The owner whose session lives, or null. */
  liveOwner(partition: number): { readonly member: string; readonly session: string } | null {
    const record = this.records.get(partition)?.record
    if (record === undefined || record.phase === 'vacant') return null
    const { member, session } = record.owner
    return this.isAlive(member, session) ? record.owner : null
  }

  isDisabled(partition: number): boolean {
    return this.disabled.has('group') || this.disabled.has(partition)
  }
}

function toggle<T>(set: Set<T>, value: T, isIn: boolean): void {
  if (isIn) set.add(value)
  else set.delete(value)
}
