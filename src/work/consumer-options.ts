/** What the author of a partitioned consumer writes, and what the handler is given. */
import type { Token } from '../core/token.ts'
import type { Streams } from '../ports/streams.ts'
import type { Partition } from '../runtime/worker-options.ts'
import type { BackOff } from './attempts.ts'
import type { DeadLetter } from './dead-letters.ts'
import type { FencedResult, Seal } from './fenced-results.ts'

export type WorkMessage = {
  readonly key: string
  readonly data: Uint8Array
  readonly subject: string
  /** Place in the stream. */
  readonly sequence: number
  /** The id that it was published with; empty without one. */
  readonly messageId: string
  /** Wall time at which the stream took it. */
  readonly storedAtMs: number
}

export type Work = {
  readonly message: WorkMessage
  /** For every protected resource. */
  readonly token: Token
  readonly partition: Partition
  /** Fires when the partition is lost: abandon what is not committed. */
  readonly signal: AbortSignal
  /** `<stream>/<sequence>`: the same whoever handles the message. */
  readonly idempotencyKey: string
  /** 1 the first time, as far as failures are stored (durable mode), else since this grant. */
  readonly attempt: number
}

/** A place to start after, kept in the fenced resource per partition and name. */
export type WorkCheckpoint = { readonly name: string; readonly sequence: number }

export type CheckpointedWork = Work & {
  /**
   * Commit this together with the effect: whoever comes next starts after it. Read it where the effect is
   * committed; with `concurrency` above 1 its `sequence` lags behind the message's own, which is
   * `position`, and never goes back. `fencedTransaction` takes it as it is.
   */
  readonly checkpoint: WorkCheckpoint & { readonly position: number }
}

export type ConsumerLimits = {
  /** Messages worked on at once in the whole worker. Default 64. */
  readonly perWorker?: number
  /**
   * Messages worked on at once in a partition. Default 1: one after the other. Above 1 those of one key
   * still run one after the other.
   */
  readonly concurrency?: number
  /** Messages taken and not done in a partition, waiting for their key included. Default 8 × concurrency. */
  readonly window?: number
  /** Messages that a partition's reader holds beyond those (checkpoint mode). Default 64. */
  readonly prefetch?: number
}

export type ConsumerFailure = {
  readonly token: Token
  readonly message: WorkMessage
  /** So far; an outage adds none. */
  readonly failures: number
  readonly error: unknown
}

type CommonOptions = ConsumerLimits & {
  readonly streams: Streams
  /** Messages are on `<prefix>.<partition>.<key token>`. */
  readonly prefix: string
  /** Default: the prefix with `_` for each dot. */
  readonly stream?: string
  /** A message that failed this often is put aside as a dead letter. Default 5; `Infinity` for never. */
  readonly failuresMax?: number
  /**
   * True for an error that is no fault of the message: it is tried on and on. Default: a server that
   * cannot be reached, as Tenure's errors, `fetch` and Node's sockets say it.
   */
  readonly isOutage?: (error: unknown) => boolean
  readonly backOff?: BackOff
  readonly onFailure?: (failure: ConsumerFailure) => void
  readonly onDeadLetter?: (letter: DeadLetter) => void
}

export type CheckpointConsumerOptions = CommonOptions & {
  readonly mode?: 'checkpoint'
  readonly seal: Seal
  readonly checkpoint: {
    /** Default: the stream's name. */
    readonly name?: string
    /** The partition's checkpoint; null or 0 for none. Called after `seal`. */
    load(token: Token, name: string): number | null | Promise<number | null>
    /**
     * Raises it without an effect, fenced by the token: past a dead letter, and at release up to what is
     * done. Without it both wait for the next message's commit; until then a new owner meets them again.
     */
    save?(token: Token, checkpoint: WorkCheckpoint): FencedResult | Promise<FencedResult>
  }
  /** What it returns counts as `FencedResult` says: a refusal is not done. */
  readonly handle: (work: CheckpointedWork) => FencedResult | Promise<FencedResult>
}

export type DurableConsumerOptions = CommonOptions & {
  readonly mode: 'durable'
  /** Where the effects go to something that has a fence. */
  readonly seal?: Seal
  /** Several uses of one stream have a name each. Letters, digits, `_`, `-`. Default `work`. */
  readonly name?: string
  /** How long a dead owner's messages stay with it. Renewed while they are worked on. Default 3000 ms. */
  readonly ackWaitMs?: number
  /** What it returns counts as `FencedResult` says: a refusal is not acknowledged. */
  readonly handle: (work: Work) => FencedResult | Promise<FencedResult>
}

export type PartitionedConsumerOptions = CheckpointConsumerOptions | DurableConsumerOptions
