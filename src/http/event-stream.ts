/**
 * The event stream of one group: server-sent events, resumable by map version.
 *
 *   connect ──▶ start (nothing to resume, or all of it kept) ──▶ map, map, …
 *          └──▶ reset (the version asked for is too old or not of this map: read everything again) ──▶ map, …
 *
 * - `start` and `reset` carry the version from which the stream goes on; `map` carries the changed
 *   partitions, whole, in order. Only the last part of a large change carries the id, so a reader that
 *   breaks off inside it gets all of it again.
 * - A connection is a cursor, not a queue: while its socket takes nothing more, nothing is kept for it;
 *   once it drains, it catches up from the version that it was sent last, or gets `reset`.
 * - A comment each `heartbeatMs` shows both sides that the other is there.
 *
 * Not promised: every intermediate state of a partition after a reset; `serving` changes as events.
 */
import type { ServerResponse } from 'node:http'
import type { Clock, Timer } from '../ports/clock.ts'
import type { GroupView, MapEvent, MapVersion } from '../ports/group-access.ts'
import { compareVersions, versionText } from './version-headers.ts'

/** Partitions in one `map` event. */
const PARTITIONS_PER_EVENT = 500
/** Connections of one server; each costs a socket and one write per change. */
export const STREAMS_MAX = 1000
/** How long a reader waits before it connects again. */
const RECONNECT_MS = 1000

export type EventStreams = {
  /** Writes head and first event, then every change until either side closes. */
  open(response: ServerResponse, view: GroupView, after: MapVersion | null): void
  readonly size: number
  /** Ends every stream; readers connect again elsewhere with their last id. */
  close(): void
}

export function createEventStreams(options: {
  readonly clock: Clock
  readonly heartbeatMs: number
}): EventStreams {
  const { clock, heartbeatMs } = options
  const streams = new Set<EventStream>()
  let timer: Timer | null = null
  const beat = () => {
    for (const stream of streams) stream.beat()
    timer = streams.size === 0 ? null : clock.schedule(heartbeatMs, beat)
  }
  return {
    open(response, view, after) {
      const stream = new EventStream(response, view)
      streams.add(stream)
      response.once('close', () => {
        stream.end()
        streams.delete(stream)
      })
      stream.begin(after)
      timer ??= clock.schedule(heartbeatMs, beat)
    },
    get size() {
      return streams.size
    },
    close() {
      timer?.cancel()
      timer = null
      for (const stream of streams) stream.end()
      streams.clear()
    },
  }
}

/** One connection: which version it was sent last, and whether its socket takes more. */
class EventStream {
  readonly #response: ServerResponse
  readonly #view: GroupView
  #sent: MapVersion
  #blocked = false
  #unsubscribe: (() => void) | null = null

  constructor(response: ServerResponse, view: GroupView) {
    this.#response = response
    this.#view = view
    this.#sent = view.freshness().version
  }

  begin(after: MapVersion | null): void {
    this.#response.write(`retry: ${RECONNECT_MS}\n\n`)
    this.#response.on('drain', () => {
      this.#blocked = false
      this.#catchUp()
    })
    this.#unsubscribe = this.#view.onChange((event) => this.#change(event))
    const current = this.#sent
    if (after === null) {
      this.#write(controlText('start', current))
    } else if (compareVersions(after, current) > 0) {
      this.#reset()
    } else {
      this.#sent = after
      if (this.#view.eventsSince(after) !== null) this.#write(controlText('start', after))
      this.#catchUp()
    }
  }

  beat(): void {
    if (this.#blocked) return
    const { ageMs, stale } = this.#view.freshness()
    this.#write(`: ageMs=${Math.round(ageMs)} stale=${stale}\n\n`)
  }

  end(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = null
    this.#response.end()
  }

  #change(event: MapEvent): void {
    if (this.#blocked || compareVersions(event.version, this.#sent) <= 0) return
    this.#send(event)
  }

  #catchUp(): void {
    const missed = this.#view.eventsSince(this.#sent)
    if (missed === null) {
      this.#reset()
      return
    }
    for (const event of missed) {
      if (this.#blocked) return
      if (compareVersions(event.version, this.#sent) > 0) this.#send(event)
    }
  }

  #send(event: MapEvent): void {
    this.#sent = event.version
    this.#write(textOf(event))
  }

  #reset(): void {
    this.#sent = this.#view.freshness().version
    this.#write(controlText('reset', this.#sent))
  }

  #write(text: string): void {
    if (this.#unsubscribe === null) return
    if (!this.#response.write(text)) this.#blocked = true
  }
}

function controlText(event: 'start' | 'reset', version: MapVersion): string {
  const text = versionText(version)
  return `event: ${event}\nid: ${text}\ndata: {"version":"${text}"}\n\n`
}

/** Each change is written once, for however many readers; forgotten with the event. */
const texts = new WeakMap<MapEvent, string>()

function textOf(event: MapEvent): string {
  let text = texts.get(event)
  if (text !== undefined) return text
  const version = versionText(event.version)
  text = ''
  for (let from = 0; from === 0 || from < event.partitions.length; from += PARTITIONS_PER_EVENT) {
    const to = from + PARTITIONS_PER_EVENT
    const isLast = to >= event.partitions.length
    const data = { version, partitions: event.partitions.slice(from, to), last: isLast }
    const id = isLast ? `id: ${version}\n` : ''
    text += `event: map\n${id}data: ${JSON.stringify(data)}\n\n`
  }
  texts.set(event, text)
  return text
}
