/**
 * The mirror: list, then watch, and keep one `GroupState` equal to what etcd holds.
 *
 *   listing ──listed at R──▶ watching from R+1 ──broken──▶ checking ──▶ watching from where it was
 *      ▲                          │                           │
 *      └──────compacted───────────┴───────── out of step ─────┘
 *
 * It loses nothing over reconnects: a watch reopens after the last revision that was delivered, never
 * after one that a server merely mentioned. It trusts no watch for ever (servers lost events around
 * compactions): every `resyncMs`, and after each break, a *check* looks for differences
 * (`mirror-audit.ts`), and only one that stands twice costs a new list. The same check, a writing
 * transaction, sees a store that was restored from a backup: a revision below one known before the
 * question was sent, twice. A list alone may be stale, so one that shows a lower revision than known
 * proves nothing: the check decides, and the state never goes back on the word of a list (S8).
 *
 * What a transaction's reply showed is taken in ahead of the watch, also while a check is under way; but
 * not while a list is, which may be older than the reply and would undo it without a word. No reply's revision
 * counts for whether the store went back: it may have been on its way since before a restore that is known.
 *
 * A risen incarnation is not taken in as an event: it mostly means that the store was restored, perhaps
 * unseen by this process, whose watch then goes on over a state that was never the store's. It costs a
 * new list, of its revision or later, and becomes known with that; unless a check shows that the store went
 * back below the raise itself, which no list will ever reach then.
 *
 * A record of a format that this build does not know fails the first list (`ready` rejects); later on it
 * is thrown where nobody catches it, and stops the process.
 */
import type { GroupChange } from '../core/group-state.ts'
import { GroupState } from '../core/group-state.ts'
import type { GroupName } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { KeyValue } from '../core/transaction.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Store, Watch, WatchEnd, WatchEvent } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { createDeferred } from './deferred.ts'
import { type Finding, MirrorAudit } from './mirror-audit.ts'
import { CALL_TIMEOUT_MS, listAll } from './mirror-list.ts'
import { MirrorPulse } from './mirror-pulse.ts'

export type MirrorListener = {
  /** After each batch; the state includes it already. */
  changed(change: GroupChange): void
  /** The store's revision went back: it was restored or wiped. A fresh list follows. */
  rewound(): void
}

export type MirrorOptions = {
  readonly group: GroupName
  readonly keys: GroupKeys
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  /** Between checks; jittered by a fifth. Default 15 s, more from 2,500 partitions on. */
  readonly resyncMs?: number
  /**
   * Between pulses, each one commit without a revision: with the watch open, an answer means that the
   * state is current. Default: none; whoever answers questions about the map's age sets it.
   */
  readonly pulseMs?: number
}

const RESYNC_MS = 15_000
/** etcd reads every key for a summary; all members together must not keep it busy with that. */
const RESYNC_PARTITION_MS = 6
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2000
/** Until a difference is looked at again; doubles while it changes, up to this or what the size allows. */
const RECHECK_FIRST_MS = 250
const RECHECK_MAX_MS = 4000
/** Of the time between two checks of a group of that size. */
const RECHECK_SHARE = 1 / 10

export class Mirror {
  readonly state: GroupState
  /** Monotonic time at which the state was last known to be current; null before the first list. */
  currentAtMs: number | null = null
  private readonly options: MirrorOptions
  private readonly listeners = new Set<MirrorListener>()
  private watch: Watch | null = null
  private checkTimer: Timer | null = null
  private retryTimer: Timer | null = null
  private pulse: MirrorPulse | null = null
  private retryMs = RETRY_FIRST_MS
  private readonly audit: MirrorAudit
  /** Null while nothing differs. */
  private recheckMs: number | null = null
  /** The newest revision that a list or a watch delivered: where the next watch goes on. */
  private deliveredRevision = 0
  private lowerOnce = false
  /** Revision of an incarnation that the state does not have yet. */
  private raisedAt: number | null = null
  private closed = false
  private busy = false
  private listing = false
  private readonly listed = createDeferred<void>()

  constructor(options: MirrorOptions) {
    this.options = options
    this.state = new GroupState(options.keys)
    this.audit = new MirrorAudit(this.state)
    void this.list('start')
    const { store, keys, clock, telemetry, pulseMs } = options
    if (pulseMs !== undefined) {
      const answered = () => {
        if (this.watch !== null) this.confirmCurrent()
      }
      this.pulse = new MirrorPulse({ store, keys, clock, telemetry, pulseMs, answered })
    }
  }

  /** Resolves after the first complete list. */
  get ready(): Promise<void> {
    return this.listed.promise
  }

  subscribe(listener: MirrorListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /**
   * Takes in what a transaction's reply showed, ahead of the watch; `teller` is not told.
   * @returns false: it was not taken in, and list or watch will tell of it
   */
  learn(entry: KeyValue, teller: MirrorListener): boolean {
    if (this.closed || this.listing) return false
    const event = { type: 'put', entry } as const
    if (this.raisesIncarnation(event)) {
      this.raised(entry.modRevision)
      return false
    }
    this.emit(this.state.apply([event], 0), teller)
    return true
  }

  close(): void {
    this.closed = true
    this.watch?.close()
    this.watch = null
    this.checkTimer?.cancel()
    this.retryTimer?.cancel()
    this.pulse?.close()
    this.listed.reject(new Error('mirror closed'))
  }

  private async list(why: string, mayGoBack = false): Promise<void> {
    if (this.closed || this.busy) return
    this.busy = true
    this.listing = true
    this.watch?.close()
    this.watch = null
    const { store, keys } = this.options
    const listed = await listAll(store, keys.prefix, () => this.closed)
    this.busy = false
    this.listing = false
    if (this.closed) return
    if (!listed.ok) {
      this.broken(listed.detail)
      return this.retryLater(() => this.list(why, mayGoBack))
    }
    const { revision, entries } = listed
    // Stale, or the store went back below the raise as well: the check tells which.
    if (revision < (this.raisedAt ?? 0)) return this.retryLater(() => this.check())
    if (revision < this.state.revision && !mayGoBack) {
      this.openWatch()
      return this.retryLater(() => this.check())
    }
    this.raisedAt = null
    this.retryMs = RETRY_FIRST_MS
    this.recheckMs = null
    const change = this.replaced(entries, revision)
    if (change === null) return
    this.deliveredRevision = revision
    this.audit.reset()
    this.confirmCurrent()
    const { group, telemetry } = this.options
    telemetry.record({ type: 'mirror-listed', group, revision, keys: entries.length, why })
    this.emit(change)
    this.listed.resolve()
    this.openWatch()
    this.scheduleCheck()
  }

  private replaced(entries: readonly KeyValue[], revision: number): GroupChange | null {
    try {
      return this.state.replace(entries, revision)
    } catch (error) {
      const isFirst = this.currentAtMs === null
      this.listed.reject(error)
      this.close()
      if (!isFirst) throw error
      return null
    }
  }

  private openWatch(): void {
    if (this.closed) return
    this.watch?.close()
    this.watch = null
    const from = this.deliveredRevision + 1
    // What an earlier watch still says is not listened to.
    let isOver = false
    const watch = this.options.store.watch(this.options.keys.prefix, from, {
      events: (events) => {
        if (!isOver && !this.closed) this.watched(events)
      },
      progress: (revision) => {
        if (isOver || this.closed) return
        if (revision > this.state.revision) this.state.revision = revision
        this.confirmCurrent()
      },
      ended: (end) => {
        if (isOver || this.closed) return
        isOver = true
        this.watch = null
        this.watchEnded(end)
      },
    })
    if (isOver) return
    this.watch = {
      close: () => {
        isOver = true
        watch.close()
      },
    }
  }

  private watched(events: readonly WatchEvent[]): void {
    const last = events[events.length - 1]
    if (last === undefined) return
    const revision = last.type === 'put' ? last.entry.modRevision : last.modRevision
    if (events.some((event) => this.raisesIncarnation(event))) {
      this.raised(revision)
      return
    }
    const change = this.state.apply(events, revision)
    this.deliveredRevision = Math.max(this.deliveredRevision, revision)
    this.confirmCurrent()
    this.retryMs = RETRY_FIRST_MS
    this.emit(change)
  }

  private raisesIncarnation(event: WatchEvent): boolean {
    const { incarnation } = this.state
    if (event.type !== 'put' || event.entry.key !== this.options.keys.incarnation) return false
    return incarnation !== null && Number(event.entry.value) !== incarnation
  }

  private raised(revision: number): void {
    this.raisedAt = revision
    this.watch?.close()
    this.watch = null
    void this.list('incarnation', true)
  }

  private watchEnded(end: WatchEnd): void {
    switch (end.reason) {
      case 'compacted':
        // Not at once: a server whose lists are stale as well would be asked without pause.
        this.retryLater(() => this.list('compacted'))
        return
      case 'broken':
      case 'refused':
        this.broken(end.detail)
        this.retryLater(() => this.check())
        return
      default:
        end satisfies never
    }
  }

  private get resyncMs(): number {
    return this.options.resyncMs ?? Math.max(RESYNC_MS, this.state.partitions * RESYNC_PARTITION_MS)
  }

  private scheduleCheck(): void {
    this.checkTimer?.cancel()
    const { clock, random } = this.options
    const delayMs = this.recheckMs ?? this.resyncMs * (0.9 + random.fraction() / 5)
    this.checkTimer = clock.schedule(delayMs, () => void this.check())
  }

  /** One writing transaction: is the state what the store holds, and did its revision go back? */
  private async check(): Promise<void> {
    if (this.closed || this.busy) return
    const { store, keys } = this.options
    const knownBefore = this.state.revision
    const raisedBefore = this.raisedAt ?? 0
    this.busy = true
    const reply = await store.transact(
      {
        compare: [],
        success: [
          { type: 'delete', key: keys.never },
          { type: 'summary', prefix: keys.prefix },
        ],
        failure: [],
      },
      { timeoutMs: CALL_TIMEOUT_MS },
    )
    this.busy = false
    if (this.closed) return
    if (!reply.ok) {
      this.broken(reply.detail)
      return this.retryLater(() => this.check())
    }
    if (reply.revision < Math.max(knownBefore, raisedBefore)) return this.wentBack()
    if (this.raisedAt !== null) return this.list('incarnation', true)
    this.lowerOnce = false
    const summary = reply.value.results[1]
    const finding = summary?.type === 'summary' ? this.audit.summary(summary) : 'same'
    // A difference that changes may be a lasting one beside news on its way: the keys tell them apart.
    const swept = finding === 'stands' ? finding : await this.sweep()
    const found = swept === 'same' ? finding : swept
    if (this.closed || this.busy) return
    if (this.raisedAt !== null) return this.list('incarnation', true)
    if (found === 'stands') return void this.list('out of step')
    if (this.watch === null) this.openWatch()
    if (found === 'same') this.confirmCurrent()
    const nextMs = this.recheckMs === null ? RECHECK_FIRST_MS : this.recheckMs * 2
    const mostMs = Math.max(RECHECK_MAX_MS, this.resyncMs * RECHECK_SHARE)
    this.recheckMs = found === 'same' ? null : Math.min(mostMs, nextMs)
    this.scheduleCheck()
  }

  /** One page of keys more; one that cannot be had, or is stale, shows nothing. */
  private async sweep(): Promise<Finding> {
    const { store, keys } = this.options
    this.busy = true
    const request = { prefix: keys.prefix, ...this.audit.page }
    const knownBefore = this.state.revision
    const reply = await store.list(request, { timeoutMs: CALL_TIMEOUT_MS })
    this.busy = false
    const isNews = reply.ok && reply.revision >= knownBefore
    return isNews ? this.audit.sweep(reply.value.entries, reply.value.more) : 'same'
  }

  /** A lower revision once may be a confused answer; twice, the store's history was replaced. */
  private wentBack(): void {
    if (!this.lowerOnce) {
      this.lowerOnce = true
      void this.check()
      return
    }
    this.lowerOnce = false
    this.raisedAt = null
    for (const listener of this.listeners) listener.rewound()
    void this.list('store went back', true)
  }

  private confirmCurrent(): void {
    this.currentAtMs = this.options.clock.monotonicMs()
  }

  private emit(change: GroupChange, except: MirrorListener | null = null): void {
    const { partitions, members, settings, plans } = change
    if (partitions.length === 0 && !members && !settings && !plans) return
    for (const listener of this.listeners) if (listener !== except) listener.changed(change)
  }

  private broken(detail: string): void {
    this.options.telemetry.record({ type: 'mirror-broken', group: this.options.group, detail })
  }

  private retryLater(again: () => Promise<void>): void {
    const { clock, random } = this.options
    this.retryTimer?.cancel()
    this.retryTimer = clock.schedule(this.retryMs * (0.5 + random.fraction()), () => void again())
    this.retryMs = Math.min(RETRY_MAX_MS, this.retryMs * 2)
  }
}
