/**
 * The little that Tenure needs of JetStream: a stream, publishing with an id until it is acknowledged,
 * and reading one subject in order from a given sequence. Works from nats-server 2.9 on.
 *
 * Not promised: what the stream's limits removed. `firstSequence` in `streamState` shows that.
 */
import type { JetStreamManager, StreamConfig } from 'nats'
import { NatsError, nanos, RetentionPolicy, StorageType } from 'nats'
import { createTenureError } from '../core/tenure-error.ts'
import type { ReadOptions, StreamMessage } from './jetstream-reader.ts'
import { readInOrder } from './jetstream-reader.ts'
import type { NatsLink } from './nats-link.ts'

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

export interface JetStream {
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
   * @example for await (const message of jetStream.read({ stream, subject, fromSequence: 1, signal })) {}
   */
  read(options: ReadOptions): AsyncIterable<StreamMessage>
}

const PUBLISH_TIMEOUT_MS = 2000
const DUPLICATE_WINDOW_MS = 120_000
const STREAM_NOT_FOUND = 10059

/** JetStream on a link that others may share. */
export function jetStreamOver(link: NatsLink): JetStream {
  return {
    ensureStream: (settings) =>
      manage(link, async (manager) => {
        const config = streamConfig(settings)
        const exists = await findStream(manager, settings.name)
        if (exists === null) await manager.streams.add(config)
        else await manager.streams.update(settings.name, config)
      }),
    streamState: (stream) =>
      manage(link, async (manager) => {
        const { state } = await manager.streams.info(stream)
        return {
          messages: state.messages,
          firstSequence: state.first_seq,
          lastSequence: state.last_seq,
        }
      }),
    publish: (subject, data, { messageId, timeoutMs = PUBLISH_TIMEOUT_MS }) =>
      publish(link, subject, data, messageId, timeoutMs),
    read: (options) => readInOrder(link, options),
  }
}

async function publish(
  link: NatsLink,
  subject: string,
  data: Uint8Array,
  messageId: string,
  timeoutMs: number,
): Promise<PublishOutcome> {
  const dueMs = performance.now() + timeoutMs
  if (link.connection() === null) await link.waitConnected(timeoutMs)
  const connection = link.connection()
  const leftMs = Math.ceil(dueMs - performance.now())
  if (connection === null || leftMs < 1) {
    return { ok: false, reason: 'not-sent', detail: link.lastError() ?? 'not connected' }
  }
  try {
    const stream = connection.jetstream({ timeout: leftMs })
    const { seq, duplicate } = await stream.publish(subject, data, { msgID: messageId })
    return { ok: true, sequence: seq, duplicate }
  } catch (error: unknown) {
    const detail = error instanceof Error ? error.message : String(error)
    if (!(error instanceof NatsError)) return { ok: false, reason: 'unknown-outcome', detail }
    if (error.isJetStreamError()) return { ok: false, reason: 'refused', detail }
    // 503: no stream listens on the subject, or no server with JetStream is there yet.
    if (error.code === '503') return { ok: false, reason: 'not-sent', detail }
    return { ok: false, reason: 'unknown-outcome', detail }
  }
}

/** Runs a management call and turns the client's errors into ours. */
async function manage<T>(
  link: NatsLink,
  call: (manager: JetStreamManager) => Promise<T>,
): Promise<T> {
  const connection = link.connection()
  if (connection === null) {
    throw createTenureError('broadcast-unreachable', 'NATS is not reachable', {
      details: { lastError: link.lastError() },
    })
  }
  try {
    return await call(await connection.jetstreamManager({ checkAPI: false }))
  } catch (cause: unknown) {
    const refused = cause instanceof NatsError && cause.isJetStreamError()
    const detail = cause instanceof Error ? cause.message : String(cause)
    throw refused
      ? createTenureError('conflict', `JetStream refused: ${detail}`, { cause })
      : createTenureError('broadcast-unreachable', `JetStream did not answer: ${detail}`, { cause })
  }
}

async function findStream(manager: JetStreamManager, name: string): Promise<true | null> {
  try {
    await manager.streams.info(name)
    return true
  } catch (error: unknown) {
    if (error instanceof NatsError && error.api_error?.err_code === STREAM_NOT_FOUND) return null
    throw error
  }
}

function streamConfig(settings: StreamSettings): Partial<StreamConfig> & { name: string } {
  const { name, subjects, storage, replicas, maxAgeMs, maxBytes, maxMessages } = settings
  return {
    name,
    subjects: [...subjects],
    retention: RetentionPolicy.Limits,
    storage: storage === 'memory' ? StorageType.Memory : StorageType.File,
    num_replicas: replicas ?? 1,
    max_age: nanos(maxAgeMs ?? 0),
    max_bytes: maxBytes ?? -1,
    max_msgs: maxMessages ?? -1,
    duplicate_window: nanos(settings.duplicateWindowMs ?? DUPLICATE_WINDOW_MS),
  }
}
