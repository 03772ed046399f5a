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
 * (`mirror-check.ts`), and only one that stands twice costs a new list. The same check, a writing
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
import { MirrorCheck } from './mirror-check.ts'
import { listAll } from './mirror-list.ts'
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
  private readonly checks: MirrorCheck
  /** The newest revision that a list or a watch delivered: where the next watch goes on. */
  private deliveredRevision = 0
  /** Revision of an incarnation that the state does not have yet. */
  private raisedAt: number | null = null
  private closed = false
  private busy = false
  private listing = false
  private readonly listed = createDeferred<void>()

  constructor(options: MirrorOptions) {
    this.options = options
    this.state = new GroupState(options.keys)
    this.checks = new MirrorCheck(this.state, options.keys, options.store)
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
    const change = this.replaced(entries, revision)
    if (change === null) return
    this.deliveredRevision = revision
    this.checks.reset()
    this.confirmCurrent()
    const { group, telemetry } = this.options
    telemetry.record({ type: 'mirror-listed', group, revision, keys: entries.length, why })
    this.emit(change)
    this.listed.resolve()
    this.openWatch()
    this.scheduleCheck(null)
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

  /** @param soonMs null: as often as the group's size allows */
  private scheduleCheck(soonMs: number | null): void {
    this.checkTimer?.cancel()
    const { clock, random } = this.options
    const delayMs = soonMs ?? this.resyncMs * (0.9 + random.fraction() / 5)
    this.checkTimer = clock.schedule(delayMs, () => void this.check())
  }

  private async check(): Promise<void> {
    if (this.closed || this.busy) return
    this.busy = true
    const leastRevision = Math.max(this.state.revision, this.raisedAt ?? 0)
    const finding = await this.checks.run(
      leastRevision,
      () => this.closed || this.raisedAt !== null,
    )
    this.busy = false
    if (this.closed) return
    switch (finding.type) {
      case 'failed':
        this.broken(finding.detail)
        return this.retryLater(() => this.check())
      case 'lower':
        return void this.check()
      case 'went-back':
        return this.wentBack()
      case 'out-of-step':
        return void this.relist()
      case 'same':
      case 'differs':
        return this.checked(finding.type)
      default:
        finding satisfies never
    }
  }

  private checked(finding: 'same' | 'differs'): void {
    if (this.raisedAt !== null) return void this.list('incarnation', true)
    if (this.watch === null) this.openWatch()
    if (finding === 'same') this.confirmCurrent()
    this.scheduleCheck(this.checks.again(finding, this.resyncMs))
  }

  private relist(): void {
    if (this.raisedAt === null) void this.list('out of step')
    else void this.list('incarnation', true)
  }

  private wentBack(): void {
    this.raisedAt = null
    for (const listener of this.listeners) listener.rewound()
    void this.list('store went back', true)
  }

  private confirmCurrent(): void {
    this.currentAtMs = this.options.clock.monotonicMs()
  }

  private emit(change: GroupChange, except: MirrorListener | null = null): void {
    const { partitions, members, settings, receivers, plans } = change
    if (partitions.length === 0 && !members && !settings && !receivers && !plans) return
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
