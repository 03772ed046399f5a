/**
 * The store port: what Tenure needs of etcd and nothing else. Implementations: `src/etcd` and the
 * in-memory one in `src/testing`; both pass `test/contract`.
 *
 * Rules that both keep:
 * - Nothing is retried inside. A call that failed says whether it may have been executed.
 * - Every call ends within its timeout.
 * - Replies other than those of writing transactions may be stale (etcd 3.4.20+ after a pause): they are
 *   hints. A transaction with a `put` or `delete` on the path taken goes through consensus.
 */
import type { SessionId } from '../core/ids.ts'
import type { KeyValue, Transaction, TransactionResult } from '../core/transaction.ts'

export type StoreFailureReason =
  /** Certainly not executed (no connection could be had, no leader): safe to send again. */
  | 'not-executed'
  /** Timeout or broken connection after sending: it may have been executed, or still be. */
  | 'unknown-outcome'
  /** The store answered with a refusal: bad request, permission, dead lease, no space. */
  | 'refused'
  /** The revision asked for is compacted away. */
  | 'compacted'

export type StoreFailure = {
  readonly ok: false
  readonly reason: StoreFailureReason
  /** The server's or transport's own words, without secrets. */
  readonly detail: string
}
export type StoreSuccess<T> = {
  readonly ok: true
  /** The store's revision in the reply's header. */
  readonly revision: number
  readonly value: T
}
export type StoreReply<T> = StoreSuccess<T> | StoreFailure

export type WatchEvent =
  | { readonly type: 'put'; readonly entry: KeyValue }
  | {
      readonly type: 'delete'
      readonly key: string
      readonly modRevision: number
    }

/** Why a watch ended by itself; the caller opens a new one (or lists again when compacted). */
export type WatchEnd =
  | { readonly reason: 'broken'; readonly detail: string }
  | { readonly reason: 'compacted'; readonly compactRevision: number }
  | { readonly reason: 'refused'; readonly detail: string }

export type WatchHandler = {
  /** Events in revision order; all events of one revision arrive in one call. */
  events(events: readonly WatchEvent[]): void
  /** The watch is known to be complete up to this revision. */
  progress(revision: number): void
  /** Called once, unless `close` was called first. */
  ended(end: WatchEnd): void
}

export type Watch = { close(): void }

export type ListPage = {
  readonly entries: readonly KeyValue[]
  /** True when more keys follow the last entry. */
  readonly more: boolean
}

export type CallOptions = { readonly timeoutMs: number }

export interface Store {
  transact(transaction: Transaction, options: CallOptions): Promise<StoreReply<TransactionResult>>
  /** One page of keys under the prefix, ascending; `atRevision` pins later pages to the first's. */
  list(
    request: {
      readonly prefix: string
      readonly limit: number
      readonly after?: string
      readonly atRevision?: number
    },
    options: CallOptions,
  ): Promise<StoreReply<ListPage>>
  /** Every change under the prefix from the revision on, that revision included. */
  watch(prefix: string, fromRevision: number, handler: WatchHandler): Watch
  /** Opens the lease that the caller numbered; the store may raise the TTL. */
  openLease(
    session: SessionId,
    ttlMs: number,
    options: CallOptions,
  ): Promise<StoreReply<{ readonly ttlMs: number }>>
  /** `ttlMs` 0: the lease is gone. A positive answer proves nothing on old servers. */
  renewLease(
    session: SessionId,
    options: CallOptions,
  ): Promise<StoreReply<{ readonly ttlMs: number }>>
  /** Ends the lease and its keys; ok also when it was gone already. */
  closeLease(session: SessionId, options: CallOptions): Promise<StoreReply<null>>
  /** What the server says of itself; for `doctor` and start-up checks. */
  status(options: CallOptions): Promise<StoreReply<StoreStatus>>
  close(): Promise<void>
}

export type StoreStatus = {
  readonly version: string
  readonly databaseBytes: number
  readonly leaderKnown: boolean
  /** Raised alarms, such as `NOSPACE`. */
  readonly alarms: readonly string[]
}
