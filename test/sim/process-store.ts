/**
 * The store as one process holds it: the in-memory client, with each call noted in the session ledger,
 * and requests sent twice where a fault says so (as a transport does that retries by itself).
 *
 * A reply reaches the process only while it runs: one that is stopped gets it when it goes on, one that
 * was killed never.
 */
import type { SessionId } from '../../src/core/ids.ts'
import type { Transaction, TransactionResult } from '../../src/core/transaction.ts'
import type { Random } from '../../src/ports/random.ts'
import type {
  CallOptions,
  ListPage,
  Store,
  StoreReply,
  StoreStatus,
  Watch,
  WatchHandler,
} from '../../src/ports/store.ts'
import type { MemoryStore } from '../../src/testing/index.ts'
import type { Life } from './life.ts'
import type { SessionLedger } from './session-ledger.ts'

export class ProcessStore implements Store {
  /** Chance that a transaction is sent a second time. */
  doubled = 0
  private readonly inner: MemoryStore
  private readonly life: Life
  private readonly ledger: SessionLedger
  private readonly random: Random

  constructor(inner: MemoryStore, life: Life, ledger: SessionLedger, random: Random) {
    this.inner = inner
    this.life = life
    this.ledger = ledger
    this.random = random
  }

  async transact(
    transaction: Transaction,
    options: CallOptions,
  ): Promise<StoreReply<TransactionResult>> {
    const answered = this.ledger.sent(this.life.name, transaction)
    if (this.doubled > 0 && this.random.fraction() < this.doubled) {
      void this.inner.transact(transaction, options)
    }
    const reply = await this.inner.transact(transaction, options)
    await this.life.running()
    answered(reply)
    return reply
  }

  async list(
    request: Parameters<Store['list']>[0],
    options: CallOptions,
  ): Promise<StoreReply<ListPage>> {
    const reply = await this.inner.list(request, options)
    await this.life.running()
    return reply
  }

  watch(prefix: string, fromRevision: number, handler: WatchHandler): Watch {
    return this.inner.watch(prefix, fromRevision, handler)
  }

  async openLease(
    session: SessionId,
    ttlMs: number,
    options: CallOptions,
  ): Promise<StoreReply<{ readonly ttlMs: number }>> {
    const sentAtMs = this.life.clock.monotonicMs()
    const reply = await this.inner.openLease(session, ttlMs, options)
    await this.life.running()
    if (reply.ok) this.ledger.opened(this.life.name, session, sentAtMs, reply.value.ttlMs)
    return reply
  }

  async renewLease(
    session: SessionId,
    options: CallOptions,
  ): Promise<StoreReply<{ readonly ttlMs: number }>> {
    const sentAtMs = this.life.clock.monotonicMs()
    const reply = await this.inner.renewLease(session, options)
    await this.life.running()
    if (reply.ok) this.ledger.renewed(session, sentAtMs, reply.value.ttlMs)
    return reply
  }

  async closeLease(session: SessionId, options: CallOptions): Promise<StoreReply<null>> {
    if (this.ledger.processOf(session) === this.life.name) this.ledger.closed(session)
    const reply = await this.inner.closeLease(session, options)
    await this.life.running()
    return reply
  }

  async status(options: CallOptions): Promise<StoreReply<StoreStatus>> {
    const reply = await this.inner.status(options)
    await this.life.running()
    return reply
  }

  close(): Promise<void> {
    return this.inner.close()
  }
}
