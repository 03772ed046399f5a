/** What both kinds of reader need of a JetStream consumer. */
import type { NatsLink } from './nats-link.ts'

/** JetStream's own error code. */
export const STREAM_NOT_FOUND = 10059
const RETRY_MS = 250

/** Where a message stands. */
export type Place = {
  /** How often it was handed out, this time included. */
  readonly deliveries: number
  readonly sequence: number
  /** Number of this delivery among all of the consumer's. */
  readonly delivery: number
  readonly storedAtMs: number
}

/**
 * Where a message stands, as its reply subject says: `$JS.ACK.<stream>.<consumer>.<deliveries>.
 * <sequence>.<delivery>.<nanoseconds>.<pending>`, with domain and account before the stream, and a
 * token after the rest, from servers of that form.
 */
export function readPlace(reply: string): Place | null {
  const tokens = reply.split('.')
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) return null
  const from = tokens.length === 9 ? 4 : 6
  const [deliveries, sequence, delivery, nanoseconds] = tokens.slice(from, from + 4).map(Number)
  if (!deliveries || !sequence || !delivery || !nanoseconds) return null
  return { deliveries, sequence, delivery, storedAtMs: Math.floor(nanoseconds / 1e6) }
}

/**
 * What the call resolves to, or null as soon as the reader stops: a server that does not answer holds up
 * nobody who wants to leave. `late` is then given what the call still brings.
 */
export async function unlessAborted<T>(
  call: Promise<T>,
  signal: AbortSignal,
  late: (value: T) => void = () => {},
): Promise<T | null> {
  let stop = () => {}
  const stopped = new Promise<null>((resolve) => {
    stop = () => resolve(null)
  })
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  try {
    const value = await Promise.race([call, stopped])
    if (value === null && signal.aborted) call.then(late, () => {})
    return value
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** A moment before the next try; ends early when the link changes or the reader stops. */
export function pause(link: NatsLink, signal: AbortSignal, delayMs = RETRY_MS): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      listening.close()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, delayMs)
    const listening = link.onStatus(done)
    if (signal.aborted) done()
    else signal.addEventListener('abort', done)
  })
}
