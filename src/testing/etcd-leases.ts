/**
 * Leases of the in-memory etcd, as the server's lessor keeps them: the TTL in whole seconds and at
 * least 2 s, expiry noticed up to half a second late, all TTLs in full (and an election's time more)
 * after a change of leader. A renewal that comes between expiry and its notice waits for the notice.
 *
 *   open -> alive -> expired (deadline passed, keys still there) -> revoked
 *             \---------------------- close ---------------------->
 *             <--- a new leader extends an expired lease too
 */
import type { SessionId } from '../core/ids.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'

/** Three halves of the default election timeout, in whole seconds. */
export const LEASE_TTL_MS_MIN = 2_000
/** The lessor looks for expired leases this often. */
const EXPIRY_CHECK_MS = 500
/** What a new leader adds to each TTL: the default election timeout. */
const LEADER_EXTENSION_MS = 1_000

type Lease = {
  readonly session: SessionId
  readonly ttlMs: number
  deadlineMs: number
  timer: Timer | null
  /** Renewals that wait to hear whether the lease is revoked (0) or extended (its TTL). */
  waiting: ((ttlMs: number) => void)[]
}

/** One lease as a snapshot keeps it. */
export type KeptLease = { readonly session: SessionId; readonly ttlMs: number }

export class EtcdLeases {
  readonly #clock: Clock
  readonly #random: Random
  readonly #revoke: (session: SessionId) => void
  readonly #leases = new Map<SessionId, Lease>()
  #ticking = true

  /** `revoke` deletes the keys of a lease that has run out. */
  constructor(clock: Clock, random: Random, revoke: (session: SessionId) => void) {
    this.#clock = clock
    this.#random = random
    this.#revoke = revoke
  }

  isAlive(session: SessionId): boolean {
    return this.#leases.has(session)
  }

  /** The TTL granted, or null: the id is in use. */
  open(session: SessionId, ttlMs: number): number | null {
    if (this.#leases.has(session)) return null
    const granted = Math.max(LEASE_TTL_MS_MIN, Math.ceil(ttlMs / 1_000) * 1_000)
    this.#add({ session, ttlMs: granted }, 0)
    return granted
  }

  /** Answers the TTL in full, or 0 for a lease that is gone; at once unless it has just expired. */
  renew(session: SessionId, answer: (ttlMs: number) => void): void {
    const lease = this.#leases.get(session)
    if (lease === undefined) answer(0)
    else if (lease.deadlineMs <= this.#clock.monotonicMs()) lease.waiting.push(answer)
    else {
      lease.deadlineMs = this.#clock.monotonicMs() + lease.ttlMs
      answer(lease.ttlMs)
    }
  }

  /** Forgets the lease; its keys are the caller's to delete. False: it was gone already. */
  remove(session: SessionId): boolean {
    const lease = this.#leases.get(session)
    if (lease === undefined) return false
    lease.timer?.cancel()
    this.#leases.delete(session)
    for (const answer of lease.waiting) answer(0)
    return true
  }

  /** No quorum: nothing expires. */
  pause(): void {
    this.#ticking = false
    for (const lease of this.#leases.values()) lease.timer?.cancel()
  }

  /** A new leader: every lease has its TTL in full again, those just expired included. */
  extendAll(): void {
    this.#ticking = true
    for (const lease of this.#leases.values()) {
      lease.deadlineMs = this.#clock.monotonicMs() + lease.ttlMs + LEADER_EXTENSION_MS
      this.#watchDeadline(lease)
      const { waiting } = lease
      lease.waiting = []
      for (const answer of waiting) answer(lease.ttlMs)
    }
  }

  /** The server's clock jumps: leases run out earlier (positive) or later (negative) than they should. */
  jumpDeadlines(byMs: number): void {
    for (const lease of this.#leases.values()) {
      lease.deadlineMs -= byMs
      if (this.#ticking) this.#watchDeadline(lease)
    }
  }

  keep(): KeptLease[] {
    return [...this.#leases.values()].map(({ session, ttlMs }) => ({ session, ttlMs }))
  }

  /** Replaces all leases by those of a snapshot, their TTLs in full. */
  replace(kept: readonly KeptLease[]): void {
    for (const session of [...this.#leases.keys()]) this.remove(session)
    for (const lease of kept) this.#add(lease, LEADER_EXTENSION_MS)
  }

  /** Milliseconds until the deadline; null for a lease that is gone. */
  leftMs(session: SessionId): number | null {
    const lease = this.#leases.get(session)
    return lease === undefined ? null : lease.deadlineMs - this.#clock.monotonicMs()
  }

  #add({ session, ttlMs }: KeptLease, extensionMs: number): void {
    const deadlineMs = this.#clock.monotonicMs() + ttlMs + extensionMs
    const lease: Lease = { session, ttlMs, deadlineMs, timer: null, waiting: [] }
    this.#leases.set(session, lease)
    if (this.#ticking) this.#watchDeadline(lease)
  }

  /** One timer per lease, set again only when it fires and finds the deadline moved. */
  #watchDeadline(lease: Lease): void {
    lease.timer?.cancel()
    const leftMs = lease.deadlineMs - this.#clock.monotonicMs()
    lease.timer = this.#clock.schedule(leftMs, () => {
      if (lease.deadlineMs > this.#clock.monotonicMs()) this.#watchDeadline(lease)
      else this.#noticeLater(lease)
    })
  }

  #noticeLater(lease: Lease): void {
    lease.timer = this.#clock.schedule(this.#random.fraction() * EXPIRY_CHECK_MS, () =>
      this.#revoke(lease.session),
    )
  }
}
