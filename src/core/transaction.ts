/**
 * The transactions that the core asks a store to run, in etcd's terms and no wider: compares joined by
 * "and", a success and a failure branch, operations that may nest. All compares, at every depth, look
 * at the state before the transaction (etcd computes the path first), and no key is put twice.
 */
import type { SessionId } from './ids.ts'

export type Compare =
  | {
      readonly type: 'value-equals'
      readonly key: string
      readonly value: string
    }
  | { readonly type: 'absent'; readonly key: string }
  | { readonly type: 'present'; readonly key: string }
  /** The key stands under exactly this lease: the session lives. */
  | {
      readonly type: 'lease-equals'
      readonly key: string
      readonly session: SessionId
    }
  /** The key is absent or stands under another lease: the session is gone. */
  | {
      readonly type: 'lease-differs'
      readonly key: string
      readonly session: SessionId
    }

export type Operation =
  | {
      readonly type: 'put'
      readonly key: string
      readonly value: string
      readonly session?: SessionId
    }
  | { readonly type: 'delete'; readonly key: string }
  | { readonly type: 'get'; readonly key: string }
  /** Count of keys under the prefix, and the newest mod revision among them (0 when none). */
  | { readonly type: 'summary'; readonly prefix: string }
  | ({ readonly type: 'transaction' } & Transaction)

export type Transaction = {
  readonly compare: readonly Compare[]
  readonly success: readonly Operation[]
  readonly failure: readonly Operation[]
}

/** UTF-8 within the buffer, from `from` to before `to`. */
export type ValueBytes = {
  readonly buffer: Uint8Array
  readonly from: number
  readonly to: number
}

/** One key as the store holds it. */
export type KeyValue = {
  readonly key: string
  readonly value: string
  /** The value, where the store has it at hand as bytes: a text need not be made of it then. */
  readonly bytes?: ValueBytes
  readonly createRevision: number
  readonly modRevision: number
  /** Lease that the key stands under, or null. */
  readonly session: SessionId | null
}

export type OperationResult =
  | { readonly type: 'put' }
  | { readonly type: 'delete'; readonly deleted: number }
  | { readonly type: 'get'; readonly found: KeyValue | null }
  | {
      readonly type: 'summary'
      readonly count: number
      readonly newestModRevision: number
    }
  | ({ readonly type: 'transaction' } & TransactionResult)

export type TransactionResult = {
  readonly succeeded: boolean
  readonly results: readonly OperationResult[]
}

/** etcd's default limit: outer operations plus the largest nested list (`--max-txn-ops`). */
export const TRANSACTION_OPERATIONS_MAX = 128
