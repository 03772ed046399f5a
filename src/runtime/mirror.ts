/**
 * The mirror: list, then watch, and keep one `GroupState` equal to what etcd holds.
 *
 *   listing ──listed at R──▶ watching from R+1 ──broken──▶ checking ──▶ watching from where it was
 *      ▲                          │                           │
 *      └──────compacted───────────┴───────── out of step ─────┘
 *
 * It loses nothing over reconnects: a watch reopens after the last revision that was delivered, never
 * after one that a server merely mentioned. It trusts no watch for ever (servers lost events around
 * compactions): every `resyncMs`, and after each break, a *check* compares count and newest mod
 * revision in one writing transaction, and only a difference that stands twice, with no news between,
 * costs a new list. The same check sees a store that was restored from a backup: a revision below one
 * known before the question was sent, twice.
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
  /** Between checks; jittered by a fifth. Default 15 s. */
  readonly resyncMs?: number
  /**
   * Between pulses, each one commit without a revision: with the watch open, an answer means that the
   * state is current. Default: none; whoever answers questions about the map's age sets it.
   */
  readonly pulseMs?: number
}

const PAGE_KEYS = 5000
const CALL_TIMEOUT_MS = 3000
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
  private pulseTimer: Timer | null = null
  private reachable = true
  private retryMs = RETRY_FIRST_MS
  /** The last check's difference, to see whether it stands. */
  private difference: { readonly revision: number; readonly seen: string } | null = null
  private lowerOnce = false
  private closed = false
  private busy = false
  private readonly listed = createDeferred<void>()

  constructor(options: MirrorOptions) {
    this.options = options
    this.state = new GroupState(options.keys)
    void this.list('start')
    this.schedulePulse()
  }

  /** Resolves after the first complete list. */
  get ready(): Promise<void> {
    return this.listed.promise
  }

  subscribe(listener: MirrorListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Takes in what a transaction's reply showed, ahead of the watch; `teller` is not told. */
  learn(entry: KeyValue, teller: MirrorListener): void {
    if (this.closed || this.busy) return
    this.emit(this.state.apply([{ type: 'put', entry }], 0), teller)
  }

  close(): void {
    this.closed = true
    this.watch?.close()
    this.checkTimer?.cancel()
    this.retryTimer?.cancel()
    this.pulseTimer?.cancel()
    this.listed.reject(new Error('mirror closed'))
  }

  private async list(why: string): Promise<void> {
    if (this.closed || this.busy) return
    this.busy = true
    this.watch?.close()
    this.watch = null
    const listed = await this.readAll()
    this.busy = false
    if (this.closed) return
    if (listed === null) return this.retryLater(() => this.list(why))
    this.retryMs = RETRY_FIRST_MS
    this.difference = null
    const { revision, entries } = listed
    const change = this.state.replace(entries, revision)
    this.confirmCurrent()
    const { group, telemetry } = this.options
    telemetry.record({ type: 'mirror-listed', group, revision, keys: entries.length, why })
    this.emit(change)
    this.listed.resolve()
    this.openWatch()
    this.scheduleCheck()
  }

  /** Every key at one revision, or null when a page failed. */
  private async readAll(): Promise<{ revision: number; entries: KeyValue[] } | null> {
    const { store, keys } = this.options
    const entries: KeyValue[] = []
    let revision: number | null = null
    let after: string | null = null
    for (;;) {
      const reply: Awaited<ReturnType<Store['list']>> = await store.list(
        {
          prefix: keys.prefix,
          limit: PAGE_KEYS,
          ...(after === null ? {} : { after }),
          ...(revision === null ? {} : { atRevision: revision }),
        },
        { timeoutMs: CALL_TIMEOUT_MS },
      )
      if (!reply.ok) {
        this.broken(reply.detail)
        return null
      }
      revision ??= reply.revision
      for (const entry of reply.value.entries) entries.push(entry)
      if (!reply.value.more) return { revision, entries }
      after = entries[entries.length - 1]?.key ?? null
    }
  }

  private openWatch(): void {
    if (this.closed) return
    this.watch?.close()
    this.watch = this.options.store.watch(this.options.keys.prefix, this.state.revision + 1, {
      events: (events) => this.watched(events),
      progress: (revision) => {
        if (revision > this.state.revision) this.state.revision = revision
        this.confirmCurrent()
      },
      ended: (end) => this.watchEnded(end),
    })
  }

  private watched(events: readonly WatchEvent[]): void {
    const last = events[events.length - 1]
    if (last === undefined || this.closed) return
    const revision = last.type === 'put' ? last.entry.modRevision : last.modRevision
    const change = this.state.apply(events, revision)
    this.confirmCurrent()
    this.retryMs = RETRY_FIRST_MS
    this.emit(change)
  }

  private watchEnded(end: WatchEnd): void {
    this.watch = null
    if (this.closed) return
    switch (end.reason) {
      case 'compacted':
        void this.list('compacted')
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

  private scheduleCheck(): void {
    this.checkTimer?.cancel()
    const { clock, random } = this.options
    const resyncMs = this.options.resyncMs ?? 15_000
    const delayMs = this.difference === null ? resyncMs * (0.9 + random.fraction() / 5) : 250
    this.checkTimer = clock.schedule(delayMs, () => void this.check())
  }

  /** One writing transaction: is the state what the store holds, and did its revision go back? */
  private async check(): Promise<void> {
    if (this.closed || this.busy) return
    const { store, keys } = this.options
    const knownBefore = this.state.revision
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
    if (reply.revision < knownBefore) return this.wentBack()
    this.lowerOnce = false
    const summary = reply.value.results[1]
    if (summary?.type !== 'summary') return
    if (this.standsApart(summary)) return void this.list('out of step')
    if (this.watch === null) this.openWatch()
    if (this.difference === null) this.confirmCurrent()
    this.scheduleCheck()
  }

  private schedulePulse(): void {
    const { clock, pulseMs } = this.options
    if (pulseMs === undefined || this.closed) return
    this.pulseTimer = clock.schedule(pulseMs, () => void this.pulse(pulseMs))
  }

  private async pulse(timeoutMs: number): Promise<void> {
    const { store, keys, telemetry } = this.options
    const success = [{ type: 'delete', key: keys.never }] as const
    const reply = await store.transact({ compare: [], success, failure: [] }, { timeoutMs })
    if (this.closed) return
    if (reply.ok && this.watch !== null) this.confirmCurrent()
    if (reply.ok !== this.reachable) {
      this.reachable = reply.ok
      const detail = reply.ok ? '' : reply.detail
      telemetry.record({ type: 'store-reachable', reachable: reply.ok, detail })
    }
    this.schedulePulse()
  }

  /** A lower revision once may be a confused answer; twice, the store's history was replaced. */
  private wentBack(): void {
    if (!this.lowerOnce) {
      this.lowerOnce = true
      void this.check()
      return
    }
    this.lowerOnce = false
    for (const listener of this.listeners) listener.rewound()
    void this.list('store went back')
  }

  /** True when the same difference stands a second time although nothing arrived in between. */
  private standsApart(theirs: { count: number; newestModRevision: number }): boolean {
    const ours = this.state.summary()
    const same = ours.count === theirs.count && ours.newestModRevision === theirs.newestModRevision
    if (same) {
      this.difference = null
      return false
    }
    const seen = `${theirs.count}/${theirs.newestModRevision}`
    const before = this.difference
    this.difference = { revision: this.state.revision, seen }
    return before !== null && before.seen === seen && before.revision === this.state.revision
  }

  private confirmCurrent(): void {
    this.currentAtMs = this.options.clock.monotonicMs()
  }

  private emit(change: GroupChange, except: MirrorListener | null = null): void {
    if (change.partitions.length === 0 && !change.members && !change.settings) return
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
