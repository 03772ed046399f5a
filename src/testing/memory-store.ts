/**
 * A client of the in-memory etcd: the store port, and the switches by which a test or simulator lets
 * this one client meet faults. Each call goes to the server and back by timers of the virtual clock and
 * ends exactly once: by its reply, by a break of the connection, or at its timeout.
 */
import type { SessionId } from '../core/ids.ts'
import type { Transaction, TransactionResult } from '../core/transaction.ts'
import type { Timer } from '../ports/clock.ts'
import type {
  CallOptions,
  ListPage,
  Store,
  StoreFailure,
  StoreReply,
  StoreStatus,
  Watch,
  WatchHandler,
} from '../ports/store.ts'
import type { EtcdCluster, ListRequest, RequestWay } from './etcd-cluster.ts'
import { isReadOnly } from './etcd-transaction.ts'
import {
  type CallFault,
  type CallKind,
  drawCallFault,
  drawDelayMs,
  noStoreFaults,
  type StoreFaults,
} from './faults.ts'
import { MemoryWatch } from './memory-watch.ts'
import type { Cut, StoreLink } from './store-link.ts'

export interface MemoryStore extends Store {
  readonly name: string
  /** Chances and delays of this client; change its fields at any time. */
  readonly faults: StoreFaults
  /** Calls made so far, by kind. */
  readonly calls: Readonly<Record<CallKind, number>>
  /** Orders a fault for the next call (of the kind, if one is named); orders queue up. */
  failNext(fault: CallFault, kind?: CallKind): void
  /** Refused connection: new calls are `not-executed`, those under way `unknown-outcome`. */
  disconnect(): void
  reconnect(): void
  /** Silence: requests do not arrive, or replies (and watch events) do not, or neither does. */
  cutOff(cut: Cut): void
  heal(): void
  /** From now on lists and read-only transactions see the store as it is at this moment. */
  freezeReads(): void
  thawReads(): void
  /** The watches open now stay open and hear nothing any more. */
  silenceWatches(): void
  /** The process is gone: the server forgets this client, which is told nothing. */
  abandon(): void
}

type Answer<T> = (reply: StoreReply<T>) => void

type SentCall<T> = {
  readonly fault: CallFault | null
  readonly timeoutMs: number
  readonly way: RequestWay
  readonly execute: (answer: Answer<T>) => void
  readonly settle: Answer<T>
}

export class ConnectedStore implements MemoryStore {
  readonly name: string
  readonly faults: StoreFaults = noStoreFaults()
  readonly calls: Record<CallKind, number> = {
    transact: 0,
    list: 0,
    'open-lease': 0,
    'renew-lease': 0,
    'close-lease': 0,
    status: 0,
  }
  readonly #cluster: EtcdCluster
  readonly #link: StoreLink
  readonly #watches = new Set<MemoryWatch>()
  readonly #lost: (detail: string) => void
  #ordered: { readonly fault: CallFault; readonly kind: CallKind | null }[] = []
  #frozenRevision: number | null = null
  #closed = false

  constructor(name: string, cluster: EtcdCluster, link: StoreLink) {
    this.name = name
    this.#cluster = cluster
    this.#link = link
    this.#lost = (detail) => link.break(detail)
    cluster.addClient(this.#lost)
  }

  transact(transaction: Transaction, options: CallOptions): Promise<StoreReply<TransactionResult>> {
    const isRead = isReadOnly(transaction)
    return this.#call('transact', options, isRead ? 'leader' : 'disk', (answer) => {
      const stale = isRead ? this.#staleRevision() : undefined
      answer(this.#cluster.transact(transaction, stale))
    })
  }

  list(request: ListRequest, options: CallOptions): Promise<StoreReply<ListPage>> {
    return this.#call('list', options, 'leader', (answer) =>
      answer(this.#cluster.list(request, this.#staleRevision())),
    )
  }

  watch(prefix: string, fromRevision: number, handler: WatchHandler): Watch {
    const { ended } = handler
    const watch = new MemoryWatch(this.#cluster, this.#link, this.faults, prefix, fromRevision, {
      events: (events) => handler.events(events),
      progress: (revision) => handler.progress(revision),
      ended: (end) => {
        this.#watches.delete(watch)
        ended.call(handler, end)
      },
    })
    this.#watches.add(watch)
    return {
      close: () => {
        this.#watches.delete(watch)
        watch.close()
      },
    }
  }

  openLease(
    session: SessionId,
    ttlMs: number,
    options: CallOptions,
  ): Promise<StoreReply<{ readonly ttlMs: number }>> {
    return this.#call('open-lease', options, 'disk', (answer) =>
      answer(this.#cluster.openLease(session, ttlMs)),
    )
  }

  renewLease(
    session: SessionId,
    options: CallOptions,
  ): Promise<StoreReply<{ readonly ttlMs: number }>> {
    return this.#call('renew-lease', options, 'leader', (answer) =>
      this.#cluster.renewLease(session, answer),
    )
  }

  closeLease(session: SessionId, options: CallOptions): Promise<StoreReply<null>> {
    return this.#call('close-lease', options, 'disk', (answer) =>
      answer(this.#cluster.closeLease(session)),
    )
  }

  status(options: CallOptions): Promise<StoreReply<StoreStatus>> {
    return this.#call('status', options, 'member', (answer) => answer(this.#cluster.status()))
  }

  async close(): Promise<void> {
    this.#link.disconnect()
    this.abandon()
  }

  abandon(): void {
    this.#closed = true
    for (const watch of this.#watches) watch.close()
    this.#watches.clear()
    this.#link.abandon()
    this.#cluster.removeClient(this.#lost)
  }

  failNext(fault: CallFault, kind?: CallKind): void {
    this.#ordered.push({ fault, kind: kind ?? null })
  }

  disconnect(): void {
    this.#link.disconnect()
  }

  reconnect(): void {
    this.#link.reconnect()
  }

  cutOff(cut: Cut): void {
    this.#link.cutOff(cut)
  }

  heal(): void {
    this.#link.heal()
  }

  freezeReads(): void {
    this.#frozenRevision = this.#cluster.data.revision
  }

  thawReads(): void {
    this.#frozenRevision = null
  }

  silenceWatches(): void {
    for (const watch of this.#watches) watch.silence()
  }

  #call<T>(
    kind: CallKind,
    { timeoutMs }: CallOptions,
    way: RequestWay,
    execute: (answer: Answer<T>) => void,
  ): Promise<StoreReply<T>> {
    this.calls[kind] += 1
    return new Promise((resolve) => {
      const { clock } = this.#link
      let settled = false
      let timer: Timer | null = null
      const settle: Answer<T> = (reply) => {
        if (settled) return
        settled = true
        timer?.cancel()
        stopListening()
        resolve(reply)
      }
      // In a timer of the process: one that is paused, or dead, learns of nothing.
      const stopListening = this.#link.onBreak((detail) => {
        clock.schedule(0, () => settle(unknownOutcome(detail)))
      })
      timer = clock.schedule(timeoutMs, () => settle(unknownOutcome('deadline exceeded')))
      const fault = this.#takeFault(kind)
      const refusal = this.#refusal(fault)
      if (refusal === null) this.#send({ fault, timeoutMs, way, execute, settle })
      else clock.schedule(this.#requestDelayMs(), () => settle(refusal))
    })
  }

  /** Sends the request; what comes back, if anything does, settles the call. */
  #send<T>({ fault, timeoutMs, way, execute, settle }: SentCall<T>): void {
    if (fault === 'drop-request' || this.#link.cut.requests) return
    const { random, connectionEra } = this.#cluster
    const lateMs =
      fault === 'execute-late' ? timeoutMs + random.fraction() * this.faults.lateMsMax : 0
    const reply: Answer<T> = (answer) => {
      if (fault === 'lose-reply') return
      this.#link.clock.schedule(drawDelayMs(random, this.faults.replyDelay), () => {
        if (!this.#link.cut.replies) settle(answer)
      })
    }
    this.#cluster.clock.schedule(this.#requestDelayMs() + lateMs, () => {
      if (connectionEra !== this.#cluster.connectionEra) return
      this.#cluster.admit(way, () => execute(reply), reply)
    })
  }

  /** Why a call cannot even be sent. */
  #refusal(fault: CallFault | null): StoreFailure | null {
    if (this.#closed) return notExecuted('the client is closed')
    if (fault === 'not-executed') return notExecuted('connection refused')
    const reachable = this.#link.connected && this.#cluster.availability !== 'down'
    return reachable ? null : notExecuted('connection refused')
  }

  #takeFault(kind: CallKind): CallFault | null {
    const drawn = drawCallFault(this.#cluster.random, this.faults)
    const index = this.#ordered.findIndex((order) => order.kind === null || order.kind === kind)
    if (index < 0) return drawn
    const [order] = this.#ordered.splice(index, 1)
    return order?.fault ?? drawn
  }

  #requestDelayMs(): number {
    return drawDelayMs(this.#cluster.random, this.faults.requestDelay)
  }

  /** The revision that a stale read answers from; undefined: it is not stale. */
  #staleRevision(): number | undefined {
    const { data, random } = this.#cluster
    const stale = random.fraction() < this.faults.staleReadChance
    const back = stale ? 1 + Math.floor(random.fraction() * this.faults.staleRevisionsMax) : 0
    const revision = Math.min(this.#frozenRevision ?? data.revision, data.revision) - back
    return revision === data.revision ? undefined : Math.max(1, revision, data.compactRevision)
  }
}

function unknownOutcome(detail: string): StoreFailure {
  return { ok: false, reason: 'unknown-outcome', detail }
}

function notExecuted(detail: string): StoreFailure {
  return { ok: false, reason: 'not-executed', detail }
}
