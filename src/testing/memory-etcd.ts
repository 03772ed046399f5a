/**
 * One etcd cluster in memory, on virtual time: connect clients to it as stores, look at the truth behind
 * their backs, and let it fail in the ways that real clusters do.
 */
import type { SessionId } from '../core/ids.ts'
import type { KeyValue } from '../core/transaction.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { type Availability, EtcdCluster, type EtcdSnapshot } from './etcd-cluster.ts'
import { createEtcdData, type EtcdChange, NEWEST, readKey, scanKeys } from './etcd-data.ts'
import type { DelayRange } from './faults.ts'
import { ConnectedStore, type MemoryStore } from './memory-store.ts'
import { StoreLink } from './store-link.ts'

export interface MemoryEtcd {
  /**
   * A client of its own, which can be cut off alone. With the clock of a process it stops hearing
   * anything while that process is paused.
   */
  connect(name: string, options?: { readonly clock?: Clock }): MemoryStore

  /** The store's newest revision. */
  revision(): number
  /** Keys under the prefix as they really are, or were right after a revision not yet compacted. */
  entries(prefix: string, atRevision?: number): readonly KeyValue[]
  /** One key as it really is. */
  entry(key: string): KeyValue | null
  /** How often it was restored or wiped. */
  restores(): number
  /** Milliseconds until the lease's deadline (negative: expired, not yet revoked); null: gone. */
  leaseLeftMs(session: SessionId): number | null
  /** Calls back at each change, inside the step that made it; returns how to stop. */
  onChange(listener: (change: EtcdChange) => void): () => void

  availability(): Availability
  setAvailability(availability: Availability): void
  /** Another leader at once: every lease has its TTL in full again. */
  changeLeader(): void
  /**
   * An election that takes a while: until then there is no quorum, then every lease has its TTL in full
   * again. Requests meanwhile are refused as not executed, or (`stuck`) wait and may be executed then.
   */
  loseLeader(options: { readonly forMs: number; readonly requests?: 'no-leader' | 'stuck' }): void
  /** A slow disk: each write is executed that much later, in order; null (the default): at once. */
  setDiskDelay(delay: DelayRange | null): void
  /** All connections break and can be made again at once; data and leases stay. */
  restart(): void
  /** Ends a lease that may well be alive: an old etcd does this by itself. */
  revokeLease(session: SessionId): void
  /** The leader's clock jumps ahead: leases run out that much earlier. */
  jumpClock(byMs: number): void
  /** Renewals of dead leases are acknowledged, or are not (the default). */
  acknowledgeDeadLeases(acknowledge: boolean): void
  /**
   * Forgets history below the revision. Open watches do not notice. Default: the newest; nothing happens
   * where that is compacted already.
   */
  compact(revision?: number): void
  snapshot(): EtcdSnapshot
  /** The state rewinds, revisions repeat, leases start over with their TTL in full. */
  restore(snapshot: EtcdSnapshot): void
  /** An empty cluster at revision 1. */
  wipe(): void
  /** `NOSPACE` refuses puts and new leases; others only show in the status. */
  setAlarms(alarms: readonly string[]): void
}

export type MemoryEtcdOptions = {
  readonly clock: Clock
  readonly random: Random
  /** Version that the status names; default 3.4.23. */
  readonly version?: string
  /** How often an open watch reports progress; default 1 s. */
  readonly progressIntervalMs?: number
}

/**
 * @example
 * const clock = createVirtualClock()
 * const etcd = createMemoryEtcd({ clock, random: createSeededRandom(1) })
 * const store = etcd.connect('worker-1')
 * store.failNext('lose-reply', 'transact')
 * const reply = await clock.run(store.transact(transaction, { timeoutMs: 1_000 }))
 * // reply.reason is 'unknown-outcome', yet etcd.entries('/') shows the write.
 */
export function createMemoryEtcd(options: MemoryEtcdOptions): MemoryEtcd {
  const { clock, random, version = '3.4.23', progressIntervalMs = 1_000 } = options
  const cluster = new EtcdCluster(clock, random, { version, progressIntervalMs })
  return {
    connect: (name, client = {}) =>
      new ConnectedStore(name, cluster, new StoreLink(client.clock ?? clock)),
    revision: () => cluster.data.revision,
    entries: (prefix, atRevision = NEWEST) => [...scanKeys(cluster.data, prefix, { atRevision })],
    entry: (key) => readKey(cluster.data, key),
    restores: () => cluster.restores,
    leaseLeftMs: (session) => cluster.leases.leftMs(session),
    onChange: (listener) => cluster.onChange(listener),
    availability: () => cluster.availability,
    setAvailability: (availability) => cluster.setAvailability(availability),
    changeLeader: () => cluster.changeLeader(),
    loseLeader: ({ forMs, requests = 'no-leader' }) => cluster.loseLeader(forMs, requests),
    setDiskDelay: (delay) => {
      cluster.disk.delay = delay
    },
    restart: () => {
      cluster.breakConnections('connection reset: the server restarted')
      cluster.changeLeader()
    },
    revokeLease: (session) => cluster.revoke(session),
    jumpClock: (byMs) => cluster.leases.jumpDeadlines(byMs),
    acknowledgeDeadLeases: (acknowledge) => {
      cluster.acknowledgesDeadLeases = acknowledge
    },
    compact: (revision) => {
      const { data } = cluster
      if (revision !== undefined || data.revision > data.compactRevision) {
        cluster.compact(revision ?? data.revision)
      }
    },
    snapshot: () => cluster.snapshot(),
    restore: (snapshot) => cluster.restore(snapshot),
    wipe: () => cluster.restore({ revision: 1, data: createEtcdData(), leases: [] }),
    setAlarms: (alarms) => {
      cluster.alarms = alarms
    },
  }
}
