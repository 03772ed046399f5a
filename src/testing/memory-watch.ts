/**
 * A watch of the in-memory etcd: history from the revision asked for, then every change in order, all
 * events of one revision in one call, however long each was on its way.
 *
 *   opening -> open -> ended (broken, compacted)
 *                  \-> silent: stays open and hears nothing any more (a quirk to survive)
 *   any -> closed by the caller: nothing is called any more
 */
import type { Random } from '../ports/random.ts'
import type { Watch, WatchEnd, WatchHandler } from '../ports/store.ts'
import type { EtcdCluster } from './etcd-cluster.ts'
import { changesFrom } from './etcd-data.ts'
import { drawDelayMs, type StoreFaults } from './faults.ts'
import { eventsFor, type ServerWatch } from './server-watch.ts'
import { KEEPALIVE_LIMIT_MS, type StoreLink } from './store-link.ts'

/** How many revisions of history etcd puts into one message at most. */
const CATCH_UP_REVISIONS_MAX = 1_000

export class MemoryWatch implements Watch {
  readonly #cluster: EtcdCluster
  readonly #link: StoreLink
  readonly #faults: StoreFaults
  readonly #random: Random
  readonly #handler: WatchHandler
  readonly #server: ServerWatch
  readonly #stopListening: (() => void)[]
  #status: 'open' | 'silent' | 'closed' = 'open'
  /** When the last thing sent arrives: nothing later may overtake it. */
  #lastArrivalMs = 0
  /** What arrived while replies were cut off. */
  #held: (() => void)[] = []

  constructor(
    cluster: EtcdCluster,
    link: StoreLink,
    faults: StoreFaults,
    prefix: string,
    fromRevision: number,
    handler: WatchHandler,
  ) {
    this.#cluster = cluster
    this.#link = link
    this.#faults = faults
    this.#random = cluster.random
    this.#handler = handler
    this.#server = {
      prefix,
      fromRevision,
      events: (events) => this.#send(() => handler.events(events)),
      progress: (revision) => this.#send(() => handler.progress(revision)),
      broken: (detail) => this.#send(() => this.#end({ reason: 'broken', detail })),
    }
    this.#stopListening = [
      link.onBreak((detail) => this.#endSoon({ reason: 'broken', detail })),
      link.onHeal(() => this.#deliverHeld()),
    ]
    this.#open()
  }

  close(): void {
    this.#status = 'closed'
    this.#held = []
    this.#cluster.removeWatch(this.#server)
    for (const stop of this.#stopListening) stop()
  }

  silence(): void {
    if (this.#status === 'open') this.#status = 'silent'
  }

  #open(): void {
    const { clock, connected, cut } = this.#link
    if (!connected || this.#cluster.availability === 'down') {
      this.#endSoon({ reason: 'broken', detail: 'connection refused' })
      return
    }
    if (cut.requests) {
      clock.schedule(KEEPALIVE_LIMIT_MS, () =>
        this.#end({ reason: 'broken', detail: 'keepalive probes unanswered' }),
      )
      return
    }
    const era = this.#cluster.connectionEra
    const delayMs = drawDelayMs(this.#random, this.#faults.requestDelay)
    this.#cluster.clock.schedule(delayMs, () => {
      if (this.#status !== 'closed' && era === this.#cluster.connectionEra) this.#arrive()
    })
  }

  /** The request is at the server. */
  #arrive(): void {
    const { data, availability } = this.#cluster
    if (availability === 'no-leader') {
      this.#send(() => this.#end({ reason: 'broken', detail: 'etcdserver: no leader' }))
      return
    }
    if (this.#server.fromRevision < data.compactRevision) {
      const { compactRevision } = data
      this.#send(() => this.#end({ reason: 'compacted', compactRevision }))
      return
    }
    this.#catchUp()
    this.#cluster.addWatch(this.#server)
  }

  /** History arrives many revisions at a time, as etcd sends it. */
  #catchUp(): void {
    const changes = changesFrom(this.#cluster.data, this.#server.fromRevision)
    for (let start = 0; start < changes.length; start += CATCH_UP_REVISIONS_MAX) {
      const batch = changes.slice(start, start + CATCH_UP_REVISIONS_MAX).flatMap((change) => {
        const skipped = this.#random.fraction() < this.#faults.skipHistoryChance
        return skipped ? [] : eventsFor(this.#server, change)
      })
      if (batch.length > 0) this.#server.events(batch)
    }
  }

  /** Puts something on the way to the client, behind everything sent before it. */
  #send(deliver: () => void): void {
    if (this.#status !== 'open') return
    const nowMs = this.#link.clock.monotonicMs()
    const arrivalMs = nowMs + drawDelayMs(this.#random, this.#faults.watchDelay)
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, arrivalMs)
    this.#link.clock.schedule(this.#lastArrivalMs - nowMs, () => {
      if (this.#status !== 'open') return
      if (this.#link.cut.replies || this.#held.length > 0) this.#held.push(deliver)
      else deliver()
    })
  }

  #deliverHeld(): void {
    if (this.#held.length === 0) return
    this.#link.clock.schedule(0, () => {
      const held = this.#held
      this.#held = []
      for (const deliver of held) {
        if (this.#status === 'open') deliver()
      }
    })
  }

  /** A break overtakes what was on the way: those events are lost with the connection. */
  #endSoon(end: WatchEnd): void {
    this.#link.clock.schedule(0, () => this.#end(end))
  }

  #end(end: WatchEnd): void {
    if (this.#status === 'closed') return
    this.close()
    this.#handler.ended(end)
  }
}
