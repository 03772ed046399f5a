/**
 * What the author of a worker writes and holds: options, the partition handle, the worker.
 *
 * Promised: `run` and admitted work happen only while the member holds the partition's token and its
 * session's deadline has not passed; `release` runs after the drain and before the next owner's
 * `acquire`; `lost` runs instead when ownership ended without a drain. Not promised: that a paused
 * process stops at once (the resource's fence refuses it), or order across partitions.
 */
import type { GroupSettings } from '../core/group-config.ts'
import type { MemberName, PartitionId } from '../core/ids.ts'
import type { Position, Token } from '../core/token.ts'
import type { LossCause } from '../ports/telemetry.ts'

/** One grant of one partition, in the author's hands. Ends with the grant; never reused. */
export interface Partition {
  readonly id: PartitionId
  /** Hand this to every protected resource. */
  readonly token: Token
  /** Fires at revoke: take on nothing new; work in flight finishes. Fires at loss too. */
  readonly draining: AbortSignal
  /** Fires only at loss; its `reason` is a TenureError `lost` with `details.cause`. */
  readonly signal: AbortSignal
  /** Work admitted and not yet settled. */
  readonly inFlight: number
  /**
   * Admits and runs one piece of work. While the session is suspect it waits until that is settled.
   * @throws TenureError `work-refused` (`details.reason`) when the gate is not open, and whatever `fn` throws.
   */
  work<T>(fn: (partition: Partition) => T | Promise<T>): Promise<T>
  /**
   * For long work, at each commit point.
   * @throws TenureError `lost` unless the token is held right now.
   */
  check(): void
  /**
   * A resource refused this token and says what it has sealed. Say so here whenever it happens: mostly a
   * newer owner has taken over and nothing follows, but when etcd still calls this member the owner, then
   * etcd was restored from a backup. The partition is then halted everywhere, with an alarm, until an
   * operator raises the incarnation.
   */
  refused(highest: Position): void
}

/** The four handlers. `Cursor` is whatever `acquire` returns. */
export type PartitionHandlers<Cursor> = {
  /** Owner now, not serving yet: seal every resource, then load. */
  readonly acquire?: (partition: Partition) => Cursor | Promise<Cursor>
  /**
   * Serves until `partition.draining`. May return early. A throw backs off this partition alone and
   * runs it again; refused work is no failure.
   */
  readonly run?: (partition: Partition, cursor: Cursor) => void | Promise<void>
  /** Drained and still owner: flush. */
  readonly release?: (partition: Partition, cursor: Cursor) => void | Promise<void>
  /** No longer owner: discard, write nothing. */
  readonly lost?: (partition: Partition, cursor: Cursor, cause: LossCause) => void | Promise<void>
}

export type MemberOptions = {
  /** Default: TENURE_MEMBER, else the host name and a short random suffix. */
  readonly member?: string
  /** Where callers reach this worker; shown to observers. Default: empty. */
  readonly address?: string
  /** Share of partitions relative to others, integer. Default 1. */
  readonly weight?: number
  readonly capacity?: number
  readonly zone?: string
  readonly labels?: Readonly<Record<string, string>>
}

export type WorkLimits = {
  /** Work in flight at once in this worker. Default: no limit. */
  readonly perWorker?: number
  /** Work in flight at once in one partition. Default: no limit. */
  readonly perPartition?: number
}

export type WorkerOptions<Cursor> = MemberOptions &
  PartitionHandlers<Cursor> & {
    readonly group: string
    /** Settings for a new group; an existing one must agree on partitions, TTL and fenced. */
    readonly settings?: GroupSettings
    readonly limits?: WorkLimits
    /** Install SIGTERM and SIGINT handlers that drain, and force at the second signal. Default true. */
    readonly signals?: boolean
    /** Fires to stop the worker as SIGTERM does. */
    readonly stop?: AbortSignal
  }

export type WorkOutcome<T> =
  | { readonly ok: true; readonly value: T }
  /** The key's partition is owned elsewhere (null: by nobody right now). */
  | {
      readonly ok: false
      readonly partition: PartitionId
      readonly owner: {
        readonly member: MemberName
        readonly address: string
      } | null
    }

export type HeldPartition = {
  readonly partition: PartitionId
  readonly token: Token
  readonly status: 'acquiring' | 'serving' | 'suspect' | 'draining'
  readonly inFlight: number
}

export interface Worker {
  readonly group: string
  readonly member: MemberName
  /** Resolves once the session is live and the map known, also with zero partitions. */
  readonly ready: Promise<void>
  /** Resolves last, after everything is drained and closed; rejects when the worker was evicted or broke. */
  readonly done: Promise<void>
  /** What this member holds right now. */
  partitions(): readonly HeldPartition[]
  /** Grants whose handlers or work have not ended yet, also of partitions no longer held. */
  readonly unsettled: number
  /** Milliseconds until the deadline; 0 when there is no live session. */
  deadlineInMs(): number
  /** Runs `fn` under the partition of `key`, or says who owns it. */
  work<T>(key: string, fn: (partition: Partition) => T | Promise<T>): Promise<WorkOutcome<T>>
  /** Drains everything, hands over, closes. A second call with `force` gives up waiting. */
  stop(options?: { readonly force?: boolean }): Promise<void>
}
