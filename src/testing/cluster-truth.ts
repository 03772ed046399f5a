/**
 * What etcd itself says of a group, behind every process's back: who owns what, and all changes that
 * ever were, kept also when etcd compacts them away or is restored.
 */
import type { GroupConfig } from '../core/group-config.ts'
import { decodeGroupConfig } from '../core/group-config.ts'
import type { SessionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { PartitionRecord } from '../core/partition-record.ts'
import { decodePartitionRecord, recordOwner } from '../core/partition-record.ts'
import type { Clock } from '../ports/clock.ts'
import type { EtcdChange } from './etcd-data.ts'
import type { MemoryEtcd } from './memory-etcd.ts'

export type RecordChange = {
  readonly revision: number
  /** How often etcd had been restored or wiped: revisions repeat after that. */
  readonly restores: number
  /** Virtual monotonic time. */
  readonly atMs: number
  readonly key: string
  /** Null: deleted. */
  readonly value: string | null
  /** The lease that the key stands under. */
  readonly session: SessionId | null
}

export class ClusterTruth {
  readonly history: RecordChange[] = []
  readonly #etcd: MemoryEtcd
  readonly #keys: GroupKeys
  readonly #clock: Clock
  #ownersAt = ''
  #owners: readonly (string | null)[] = []

  constructor(etcd: MemoryEtcd, keys: GroupKeys, clock: Clock) {
    this.#etcd = etcd
    this.#keys = keys
    this.#clock = clock
    etcd.onChange((change) => this.#note(change))
  }

  /** The group's settings; null: there is no group. */
  config(): GroupConfig | null {
    const value = this.#value(this.#keys.config)
    return value === null ? null : decodeGroupConfig(value)
  }

  /** Live members: their names and sessions. */
  members(): ReadonlyMap<string, SessionId> {
    const prefix = `${this.#keys.prefix}members/`
    const live = new Map<string, SessionId>()
    for (const { key, session } of this.#etcd.entries(prefix)) {
      if (session !== null) live.set(key.slice(prefix.length), session)
    }
    return live
  }

  record(partition: number): PartitionRecord | null {
    const value = this.#value(this.#keys.partition(partition))
    return value === null ? null : decodePartitionRecord(value, partition)
  }

  /** By partition, the owner whose session lives. Computed anew only when something has changed. */
  owners(): readonly (string | null)[] {
    const at = `${this.#etcd.restores()}.${this.#etcd.revision()}`
    if (at !== this.#ownersAt) {
      this.#owners = this.#readOwners()
      this.#ownersAt = at
    }
    return this.#owners
  }

  #readOwners(): readonly (string | null)[] {
    const live = this.members()
    return Array.from({ length: this.config()?.partitions ?? 0 }, (_, partition) => {
      const owner = recordOwner(this.record(partition))
      return owner !== null && live.get(owner.member) === owner.session ? owner.member : null
    })
  }

  #value(key: string): string | null {
    return this.#etcd.entry(key)?.value ?? null
  }

  #note({ revision, events }: EtcdChange): void {
    const restores = this.#etcd.restores()
    const atMs = this.#clock.monotonicMs()
    for (const event of events) {
      const { key, value, session } =
        event.type === 'put' ? event.entry : { key: event.key, value: null, session: null }
      if (!key.startsWith(this.#keys.prefix)) continue
      this.history.push({ revision, restores, atMs, key, value, session })
    }
  }
}
