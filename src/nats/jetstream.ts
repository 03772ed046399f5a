/**
 * The streams port on JetStream (`ports/streams.ts`): the little that Tenure needs of it. Works from
 * nats-server 2.9 on.
 */
import type { JetStreamManager, StreamConfig } from 'nats'
import { NatsError, nanos, RetentionPolicy, StorageType } from 'nats'
import { createTenureError } from '../core/tenure-error.ts'
import type { PublishOutcome, StreamSettings, Streams } from '../ports/streams.ts'
import { STREAM_NOT_FOUND } from './jetstream-consumer.ts'
import { readDurable } from './jetstream-durable.ts'
import { readInOrder } from './jetstream-reader.ts'
import type { NatsLink } from './nats-link.ts'

export type JetStream = Streams

const PUBLISH_TIMEOUT_MS = 2000
const DUPLICATE_WINDOW_MS = 120_000

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
    readDurable: (options) => readDurable(link, options),
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
