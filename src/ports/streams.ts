/**
 * The streams port: a stream of messages that is kept, publishing with an id until it is acknowledged,
 * reading one subject in order from a sequence on, and reading through a named consumer that the server
 * keeps. Implemented on JetStream (`src/nats/jetstream*.ts`), from nats-server 2.9 on.
 *
 * Not promised: what the stream's limits removed. `firstSequence` in `streamState` shows that.
 */
export type StreamMessage = {
  readonly subject: string
  readonly sequence: number
  readonly data: Uint8Array
  /** The id that it was published with; empty without one. */
  readonly messageId: string
  /** Wall time at which the stream took it. */
  readonly storedAtMs: number
}

export type ReadOptions = {
  readonly stream: string
  /** One subject; wildcards are allowed. */
  readonly subject: string
  /** First sequence wanted, 1 or more. */
  readonly fromSequence: number
  /** Ends the reading; it then completes without an error. */
  readonly signal: AbortSignal
  /** Messages pulled at once. Default 256. */
  readonly batch?: number
}

export type DurableOptions = {
  readonly stream: string
  readonly subject: string
  /** The consumer's name, the same for every owner of the work: letters, digits, `_`, `-`. */
  readonly consumer: string
  /** After this long without a word the server hands a message out again. */
  readonly ackWaitMs: number
  /** Most messages handed out and not acknowledged, over all readers of the consumer. */
  readonly unacknowledgedMax: number
  /** Ends the reading; it then completes without an error. */
  readonly signal: AbortSignal
}

/** A message that the server hands out again unless it is acknowledged. */
export type Delivery = StreamMessage & {
  /** 1 the first time; the server counts, over all readers. */
  readonly deliveries: number
  /** True once the server has noted it; false: it may come again. */
  acknowledge(): Promise<boolean>
  /** Asks for another `ackWaitMs`. */
  extend(): void
  /** Hands it back, to be handed out again at once. Does nothing where that may have happened already. */
  giveBack(): void
}

export type StreamSettings = {
  readonly name: string
  readonly subjects: readonly string[]
  /** Default `file`. */
  readonly storage?: 'file' | 'memory'
  /** Default 1. */
  readonly replicas?: number
  readonly maxAgeMs?: number
  readonly maxBytes?: number
  readonly maxMessages?: number
  /** How long a message id is remembered. Default 120,000 ms. */
  readonly duplicateWindowMs?: number
}

export type StreamState = {
  readonly messages: number
  /** Sequence of the oldest message kept. */
  readonly firstSequence: number
  readonly lastSequence: number
}

export type PublishOutcome =
  /** `duplicate`: the id was known; `sequence` is then that of the message kept. */
  | { readonly ok: true; readonly sequence: number; readonly duplicate: boolean }
  | {
      readonly ok: false
      /** `not-sent`: certainly not stored. `unknown-outcome`: publish again with the same id. */
      readonly reason: 'not-sent' | 'unknown-outcome' | 'refused'
      readonly detail: string
    }

export interface Streams {
  /**
   * Makes the stream, or brings its subjects and limits to these.
   * @throws TenureError `broadcast-unreachable`, or `conflict` when the server refuses.
   */
  ensureStream(settings: StreamSettings): Promise<void>
  /** @throws TenureError `broadcast-unreachable`, or `conflict` when there is no such stream. */
  streamState(stream: string): Promise<StreamState>
  /**
   * Publishes and waits for the stream's acknowledgement, and for a connection first where there is
   * none; both within `timeoutMs` (default 2000). Never rejects.
   */
  publish(
    subject: string,
    data: Uint8Array,
    options: { readonly messageId: string; readonly timeoutMs?: number },
  ): Promise<PublishOutcome>
  /**
   * Reads in order; waits out every outage.
   * @throws TenureError `conflict` when there is no such stream.
   * @example for await (const message of streams.read({ stream, subject, fromSequence: 1, signal })) {}
   */
  read(options: ReadOptions): AsyncIterable<StreamMessage>
  /**
   * Reads through a named consumer, made when missing, one message at a time; waits out every outage.
   * @throws TenureError `conflict` when there is no such stream, or the server refuses the consumer.
   */
  readDurable(options: DurableOptions): AsyncIterable<Delivery>
}
