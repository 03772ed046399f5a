/**
 * The test's own view of who wrote what and until when each session may work. It is made of the calls
 * that processes send to the store and of the replies that reach them, never of what production code
 * says of itself.
 *
 * The deadline of a session (S6): send time of the last renewal that a later proof confirmed, + the TTL
 * that etcd granted, - margin. It is over for good once its own process asks to close it.
 */
import type { Operation, Transaction, TransactionResult } from '../../src/core/transaction.ts'
import type { StoreReply } from '../../src/ports/store.ts'

type KnownSession = {
  /** The process that opened it. */
  readonly process: string
  renewedAtMs: number
  ttlMs: number
  deadlineMs: number
  closed: boolean
}

const OPERATION = /"operation":"([0-9a-f]{16})"/

export class SessionLedger {
  private readonly sessions = new Map<string, KnownSession>()
  /** Process by the id of each write that it sent. */
  private readonly authors = new Map<string, string>()
  private readonly marginMs: number

  constructor(marginMs: number) {
    this.marginMs = marginMs
  }

  /** Who sent the write of a record; null: nobody that was seen. */
  authorOf(operation: string): string | null {
    return this.authors.get(operation) ?? null
  }

  /** The process that opened the session. */
  processOf(session: string): string | null {
    return this.sessions.get(session)?.process ?? null
  }

  /** Monotonic time after which nothing may be admitted under the session; -Infinity: at no time. */
  deadlineOf(session: string): number {
    const known = this.sessions.get(session)
    return known === undefined || known.closed ? Number.NEGATIVE_INFINITY : known.deadlineMs
  }

  opened(process: string, session: string, sentAtMs: number, ttlMs: number): void {
    const deadlineMs = sentAtMs + ttlMs - this.marginMs
    this.sessions.set(session, { process, renewedAtMs: sentAtMs, ttlMs, deadlineMs, closed: false })
  }

  renewed(session: string, sentAtMs: number, ttlMs: number): void {
    const known = this.sessions.get(session)
    if (known === undefined || ttlMs <= 0) return
    known.renewedAtMs = sentAtMs
    known.ttlMs = ttlMs
  }

  closed(session: string): void {
    const known = this.sessions.get(session)
    if (known !== undefined) known.closed = true
  }

  /** To be called when a transaction is sent; hands back what to do with its reply. */
  sent(process: string, transaction: Transaction): (reply: StoreReply<TransactionResult>) => void {
    this.noteAuthors(process, transaction.success)
    this.noteAuthors(process, transaction.failure)
    const session = provenBy(transaction)
    const known = session === null ? undefined : this.sessions.get(session)
    if (known === undefined) return () => {}
    const { renewedAtMs, ttlMs } = known
    return (reply) => {
      if (!reply.ok || !reply.value.succeeded) return
      known.deadlineMs = Math.max(known.deadlineMs, renewedAtMs + ttlMs - this.marginMs)
    }
  }

  private noteAuthors(process: string, operations: readonly Operation[]): void {
    for (const operation of operations) {
      if (operation.type === 'transaction') {
        this.noteAuthors(process, operation.success)
        this.noteAuthors(process, operation.failure)
      } else if (operation.type === 'put') {
        const id = OPERATION.exec(operation.value)?.[1]
        if (id !== undefined) this.authors.set(id, process)
      }
    }
  }
}

/** A session proof compares the lease of the session's own key and writes nothing but a delete. */
function provenBy({ compare, success }: Transaction): string | null {
  const [first] = compare
  if (first?.type !== 'lease-equals') return null
  return success.length === 1 && success[0]?.type === 'delete' ? first.session : null
}
