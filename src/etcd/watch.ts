/**
 * One watch as a raw stream. It ends by itself at the first trouble and never reconnects: whoever
 * opened it opens the next one, from the revision after the last event that it was handed, or after
 * the last `progress`.
 *
 *   opening -> open -> ended | closed
 *
 * What makes it lose nothing:
 * - The `created` reply carries the server's current revision while older events are still to come,
 *   and so does the header of each response: neither ever counts as progress. Only a response without
 *   events, which the server sends to watches that have caught up, does.
 * - All events of one revision come in one response, since fragments are not asked for.
 * - A response that repeats revisions already handed over is cut down to what is new.
 * - A member cut off from its leader ends the stream instead of staying silent (`hasleader`), a dead
 *   connection is found by pings, and one that never opens by a timer of its own.
 */
import type { Watch, WatchEnd, WatchEvent, WatchHandler } from '../ports/store.ts'
import type { WatchStream } from './channel.ts'
import { encodeRange } from './codec.ts'
import type { Connection, Connections } from './connections.ts'
import { classifyError, isStaleToken } from './failure.ts'
import type { WatchResponse } from './watch-wire.ts'

/** How long the server may take to say that the watch stands. */
const OPEN_TIMEOUT_MS = 5000

/** @param forget called once, when the watch is over, however it ended */
export function openWatch(
  connections: Connections,
  request: { readonly prefix: string; readonly fromRevision: number },
  handler: WatchHandler,
  forget: (watch: Watch) => void,
): Watch {
  let stream: WatchStream | null = null
  let over = false
  let nextRevision = request.fromRevision
  const connection = connections.current()

  const finish = () => {
    over = true
    clearTimeout(timer)
    if (stream !== null) endStream(stream)
    forget(watch)
  }
  const end = (reason: WatchEnd, connectionSuspect: boolean) => {
    if (over) return
    finish()
    if (connectionSuspect && connection !== null) connections.retire(connection)
    handler.ended(reason)
  }
  const broken = (detail: string) => end({ reason: 'broken', detail }, true)
  const watch: Watch = {
    close() {
      if (!over) finish()
    },
  }
  const timer = setTimeout(
    () => broken(`the watch did not open within ${OPEN_TIMEOUT_MS} ms`),
    OPEN_TIMEOUT_MS,
  )

  const receive = (response: WatchResponse) => {
    if (over || connection === null) return
    if (response.canceled) {
      const { reason, connectionSuspect } = endOfCanceled(response, connection)
      end(reason, connectionSuspect)
      return
    }
    if (response.created) {
      connection.watchesOpened += 1
      clearTimeout(timer)
      return
    }
    if (response.events.length === 0) {
      nextRevision = Math.max(nextRevision, response.revision + 1)
      handler.progress(response.revision)
      return
    }
    const events = response.events.filter((event) => revisionOf(event) >= nextRevision)
    const last = events.at(-1)
    if (last === undefined) return
    nextRevision = revisionOf(last) + 1
    handler.events(events)
  }

  const start = (opened: WatchStream) => {
    stream = opened
    opened.on('data', receive)
    opened.on('error', (error: Error) => {
      const failure = classifyError(error)
      const { detail } = failure
      if (failure.reason === 'refused') end({ reason: 'refused', detail }, isStaleToken(detail))
      else broken(detail)
    })
    opened.on('end', () => broken('the server ended the stream'))
    if (over) {
      endStream(opened)
      return
    }
    const { key, range_end: rangeEnd } = encodeRange(request.prefix)
    const startRevision = request.fromRevision
    opened.write({ key, rangeEnd, startRevision, progressNotify: true })
  }

  if (connection === null) queueMicrotask(() => broken('the store is closed'))
  else {
    connection.channel.openWatch().then(start, (error: unknown) => {
      const { reason, detail } = classifyError(error)
      end(reason === 'refused' ? { reason, detail } : { reason: 'broken', detail }, true)
    })
  }
  return watch
}

/**
 * etcd answers a watch under an expired token with "permission denied", as if it were forbidden. On
 * a connection that has watched before, an expired token is the likelier cause: a new connection
 * fetches a new token, and a refusal that repeats there is meant.
 */
function endOfCanceled(
  response: WatchResponse,
  connection: Connection,
): { readonly reason: WatchEnd; readonly connectionSuspect: boolean } {
  if (response.compactRevision !== 0) {
    return {
      reason: { reason: 'compacted', compactRevision: response.compactRevision },
      connectionSuspect: false,
    }
  }
  const detail = response.cancelReason || 'the server canceled the watch'
  const stale = isStaleToken(detail) || connection.watchesOpened > 0
  return {
    reason:
      response.created && !stale ? { reason: 'refused', detail } : { reason: 'broken', detail },
    connectionSuspect: true,
  }
}

/** Half-closing first keeps the client library from taking the cancellation for a failure. */
export function endStream(stream: { end(): void; cancel(): void }): void {
  stream.end()
  stream.cancel()
}

export function revisionOf(event: WatchEvent): number {
  return event.type === 'put' ? event.entry.modRevision : event.modRevision
}
