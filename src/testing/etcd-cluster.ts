/**
 * The server side of the in-memory etcd: one linearizable store, its leases and watches, and whether it
 * can be reached. A request runs here in one step, at the moment of its execution; the ways there and
 * back, and most faults, belong to the client (`memory-store.ts`).
 *
 *   up         requests run
 *   no-leader  requests are refused as not executed; watches break, open ones after 4 s
 *   stuck      requests wait; once it is up again each runs with an even chance, or is lost
 *   down       connections are refused; open ones broke when it went down
 *
 * Leases run out only while it is up, and have their full TTL again whenever it comes up.
 */
import type { SessionId } from '../core/ids.ts'
import type { KeyValue, Transaction, TransactionResult } from '../core/transaction.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { ListPage, StoreFailure, StoreReply, StoreStatus } from '../ports/store.ts'
import {
  beginWrite,
  compactData,
  copyEtcdData,
  createEtcdData,
  databaseBytes,
  type EtcdChange,
  type EtcdData,
  scanKeys,
} from './etcd-data.ts'
import { EtcdDisk } from './etcd-disk.ts'
import { EtcdLeases, type KeptLease } from './etcd-leases.ts'
import { containsPut, runTransaction } from './etcd-transaction.ts'
import { compareKeys } from './key-order.ts'
import { eventsFor, type ServerWatch } from './server-watch.ts'

export type Availability = 'up' | 'no-leader' | 'stuck' | 'down'

/** What a snapshot file holds. Restoring leaves it as it was, so it can be restored again. */
export type EtcdSnapshot = {
  readonly revision: number
  readonly data: EtcdData
  readonly leases: readonly KeptLease[]
}

/** What a request needs: the member it reached alone, the leader, or the leader and its disk. */
export type RequestWay = 'member' | 'leader' | 'disk'

export type ListRequest = {
  readonly prefix: string
  readonly limit: number
  readonly after?: string
  readonly atRevision?: number
}

/** Three election timeouts and a check, as measured on a cut-off member. */
const NO_LEADER_LIMIT_MS = 4_000

export class EtcdCluster {
  readonly clock: Clock
  readonly random: Random
  readonly version: string
  /** Renewals of a dead lease are acknowledged as if it lived, as before etcd 3.4.38. */
  acknowledgesDeadLeases = false
  alarms: readonly string[] = []
  data: EtcdData = createEtcdData()
  readonly leases: EtcdLeases
  readonly disk: EtcdDisk
  restores = 0
  #availability: Availability = 'up'
  /** Rises whenever all connections break; requests sent before it rose never run. */
  #connectionEra = 0
  readonly #watches = new Set<ServerWatch>()
  readonly #clients = new Set<(detail: string) => void>()
  readonly #listeners = new Set<(change: EtcdChange) => void>()
  readonly #progressIntervalMs: number
  #progressTimer: Timer | null = null
  #stuck: (() => void)[] = []

  constructor(
    clock: Clock,
    random: Random,
    options: { readonly version: string; readonly progressIntervalMs: number },
  ) {
    this.clock = clock
    this.random = random
    this.version = options.version
    this.#progressIntervalMs = options.progressIntervalMs
    this.disk = new EtcdDisk(clock, random, {
      era: () => this.#connectionEra,
      isUp: () => this.#availability === 'up',
      leaderGone: (run) => this.#stuck.push(run),
    })
    this.leases = new EtcdLeases(clock, random, (session) =>
      this.disk.write(() => this.revoke(session)),
    )
  }

  get availability(): Availability {
    return this.#availability
  }

  get connectionEra(): number {
    return this.#connectionEra
  }

  setAvailability(availability: Availability): void {
    const before = this.#availability
    if (availability === before) return
    this.#availability = availability
    if (before === 'up') this.leases.pause()
    if (availability === 'down') this.breakConnections('connection reset: the server went down')
    if (availability === 'no-leader') this.#breakWatchesLater()
    if (availability === 'up') this.leases.extendAll()
    if (availability !== 'stuck') this.#releaseStuck()
  }

  breakConnections(detail: string): void {
    this.#connectionEra += 1
    this.#stuck = []
    this.#watches.clear()
    for (const lost of [...this.#clients]) lost(detail)
  }

  /** Calls back when all connections break. */
  addClient(lost: (detail: string) => void): void {
    this.#clients.add(lost)
  }

  removeClient(lost: (detail: string) => void): void {
    this.#clients.delete(lost)
  }

  /** Runs a request that has arrived, unless the state of the cluster forbids it. */
  admit(way: RequestWay, run: () => void, refuse: (failure: StoreFailure) => void): void {
    if (way === 'member') {
      run()
      return
    }
    switch (this.#availability) {
      case 'up':
        if (way === 'disk') this.disk.write(run)
        else run()
        return
      case 'stuck':
        this.#stuck.push(run)
        return
      case 'no-leader':
      case 'down':
        refuse({ ok: false, reason: 'not-executed', detail: 'etcdserver: no leader' })
        return
      default:
        this.#availability satisfies never
    }
  }

  transact(transaction: Transaction, atRevision?: number): StoreReply<TransactionResult> {
    if (this.alarms.includes('NOSPACE') && containsPut(transaction)) return NO_SPACE
    const isAlive = (session: SessionId) => this.leases.isAlive(session)
    const outcome = runTransaction(this.data, isAlive, transaction, atRevision)
    if (!outcome.ok) return refused(outcome.detail)
    this.#announce(outcome.change)
    return { ok: true, revision: atRevision ?? this.data.revision, value: outcome.value }
  }

  list(request: ListRequest, staleRevision?: number): StoreReply<ListPage> {
    const newest = staleRevision ?? this.data.revision
    const atRevision = request.atRevision ?? newest
    if (atRevision > newest) {
      return refused('etcdserver: mvcc: required revision is a future revision')
    }
    if (atRevision < this.data.compactRevision) {
      const detail = 'etcdserver: mvcc: required revision has been compacted'
      return { ok: false, reason: 'compacted', detail }
    }
    const entries: KeyValue[] = []
    let more = false
    const from = request.after === undefined ? {} : { after: request.after }
    for (const entry of scanKeys(this.data, request.prefix, { ...from, atRevision })) {
      if (entries.length === request.limit) {
        more = true
        break
      }
      entries.push(entry)
    }
    return { ok: true, revision: newest, value: { entries, more } }
  }

  openLease(session: SessionId, ttlMs: number): StoreReply<{ readonly ttlMs: number }> {
    if (this.alarms.includes('NOSPACE')) return NO_SPACE
    const granted = this.leases.open(session, ttlMs)
    if (granted === null) return refused('etcdserver: lease already exists')
    return { ok: true, revision: this.data.revision, value: { ttlMs: granted } }
  }

  renewLease(
    session: SessionId,
    answer: (reply: StoreReply<{ readonly ttlMs: number }>) => void,
  ): void {
    this.leases.renew(session, (ttlMs) => {
      const acknowledged = ttlMs === 0 && this.acknowledgesDeadLeases ? 10_000 : ttlMs
      answer({ ok: true, revision: this.data.revision, value: { ttlMs: acknowledged } })
    })
  }

  closeLease(session: SessionId): StoreReply<null> {
    this.revoke(session)
    return { ok: true, revision: this.data.revision, value: null }
  }

  status(): StoreReply<StoreStatus> {
    const value = {
      version: this.version,
      databaseBytes: databaseBytes(this.data),
      leaderKnown: this.#availability === 'up',
      alarms: this.alarms,
    }
    return { ok: true, revision: this.data.revision, value }
  }

  /** Ends a lease, whoever asked; its keys go in one revision, in key order. */
  revoke(session: SessionId): void {
    this.leases.remove(session)
    const keys = [...(this.data.keysOfLease.get(session) ?? [])].sort(compareKeys)
    this.data.keysOfLease.delete(session)
    const write = beginWrite(this.data)
    for (const key of keys) write.remove(key)
    this.#announce(write.finish())
  }

  /** Nobody leads for a while; then a new leader does. */
  loseLeader(forMs: number, requests: 'no-leader' | 'stuck'): void {
    if (this.#availability !== 'up') return
    this.setAvailability(requests)
    this.clock.schedule(forMs, () => {
      if (this.#availability === requests) this.setAvailability('up')
    })
  }

  /** Another leader: it knows only that the leases were alive lately. */
  changeLeader(): void {
    if (this.#availability === 'up') this.leases.extendAll()
  }

  compact(revision: number): void {
    compactData(this.data, revision)
  }

  snapshot(): EtcdSnapshot {
    const { data, leases } = this
    return { revision: data.revision, data: copyEtcdData(data), leases: leases.keep() }
  }

  restore(snapshot: EtcdSnapshot): void {
    this.breakConnections('connection reset: the store was restored')
    this.restores += 1
    this.data = copyEtcdData(snapshot.data)
    this.leases.replace(snapshot.leases)
  }

  addWatch(watch: ServerWatch): void {
    this.#watches.add(watch)
    this.#progressTimer ??= this.clock.schedule(this.#progressIntervalMs, () => this.#progress())
  }

  removeWatch(watch: ServerWatch): void {
    this.#watches.delete(watch)
  }

  onChange(listener: (change: EtcdChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #announce(change: EtcdChange | null): void {
    if (change === null) return
    for (const watch of this.#watches) {
      const events = eventsFor(watch, change)
      if (events.length > 0) watch.events(events)
    }
    for (const listener of this.#listeners) listener(change)
  }

  /** Clients that ask for a leader lose their streams once none has been there for a while. */
  #breakWatchesLater(): void {
    const era = this.#connectionEra
    this.clock.schedule(NO_LEADER_LIMIT_MS, () => {
      if (this.#availability !== 'no-leader' || this.#connectionEra !== era) return
      for (const watch of [...this.#watches]) watch.broken('etcdserver: no leader')
    })
  }

  #progress(): void {
    this.#progressTimer = null
    if (this.#watches.size === 0) return
    for (const watch of this.#watches) {
      if (watch.fromRevision <= this.data.revision) watch.progress(this.data.revision)
    }
    this.#progressTimer = this.clock.schedule(this.#progressIntervalMs, () => this.#progress())
  }

  #releaseStuck(): void {
    const stuck = this.#stuck
    this.#stuck = []
    for (const run of stuck) {
      if (this.#availability === 'up' && this.random.fraction() < 0.5) run()
    }
  }
}

function refused(detail: string): StoreFailure {
  return { ok: false, reason: 'refused', detail }
}

const NO_SPACE: StoreFailure = refused('etcdserver: mvcc: database space exceeded')
