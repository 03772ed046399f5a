/**
 * What the follower of the ownership map knows, hears and asks for, and its times. The machine and its
 * invariants: map-follower.ts.
 */
import type { MapVersion } from './map-version.ts'
import { BEFORE_ANY_VERSION } from './map-version.ts'

export type SyncReason = 'start' | 'reconnected' | 'gap' | 'mismatch' | 'silence' | 'incarnation'

type Sync = {
  readonly reason: SyncReason
  /** Completeness up to this revision settles it; null: only a snapshot or an equal hash does. */
  readonly need: number | null
  readonly sinceMs: number
}
export type FollowerPhase =
  | { readonly status: 'offline' }
  | ({ readonly status: 'waiting'; readonly requestAtMs: number } & Sync)
  | ({ readonly status: 'syncing'; readonly request: number; readonly timeoutAtMs: number } & Sync)
  | { readonly status: 'following'; readonly silenceAtMs: number }

/** All changes in (from, to] of that incarnation are merged or staged. */
export type Chain = { readonly incarnation: number; readonly from: number; readonly to: number }
/** A delta of which the parts before `next` came. */
export type Partial = MapVersion & { readonly publisher: string; readonly next: number }

export type FollowerState = {
  readonly phase: FollowerPhase
  readonly version: MapVersion
  readonly chain: Chain | null
  readonly partial: Partial | null
  /** Monotonic moment at which the map was last known to be current; null: never. */
  readonly confirmedAtMs: number | null
  /** Failed or fruitless syncs since a publisher last confirmed the map. */
  readonly attempt: number
  readonly silenceMs: number
  readonly requests: number
  /** State of the jitter's generator. */
  readonly seed: number
}

export type DeltaEvent = {
  readonly type: 'delta'
  readonly publisher: string
  readonly version: MapVersion
  readonly previous: number
  readonly part: number
  readonly parts: number
  readonly ageMs: number
}
/** What the driver's map holds when the message comes; null: no map yet. */
type MapFacts = { readonly mapHash: string | null; readonly mapNewest: number }
export type FollowerEvent =
  | { readonly type: 'connected' }
  | { readonly type: 'disconnected' }
  | DeltaEvent
  | (MapFacts & {
      readonly type: 'digest'
      readonly version: MapVersion
      readonly hash: string
      readonly ageMs: number
    })
  | (MapFacts & {
      readonly type: 'snapshot'
      readonly request: number
      readonly version: MapVersion
      readonly hash: string
      readonly ageMs: number
    })
  | { readonly type: 'snapshot-failed'; readonly request: number }
  | { readonly type: 'woke' }

export type FollowerAction =
  | { readonly type: 'merge-delta' }
  | { readonly type: 'stage-delta' }
  | { readonly type: 'merge-snapshot' }
  | { readonly type: 'replace-map' }
  | { readonly type: 'request-snapshot'; readonly request: number; readonly timeoutMs: number }
  | { readonly type: 'report-gap'; readonly have: number; readonly got: number }
  | { readonly type: 'report-resynced'; readonly reason: SyncReason; readonly tookMs: number }

export type FollowerStep = {
  readonly state: FollowerState
  readonly actions: readonly FollowerAction[]
  /** Send `woke` then; null: nothing to wait for. */
  readonly wakeAtMs: number | null
}

export const REQUEST_TIMEOUT_MS = 2000
export const BACK_OFF_MIN_MS = 200
export const BACK_OFF_MAX_MS = 5000
/** Digests come each second; after this much without one a snapshot is asked for. */
export const SILENCE_MS = 3500
export const SILENCE_MAX_MS = 30_000
/** The random moment of a first request lies between these, in milliseconds from its cause. */
export const REQUEST_SPREAD_MS: Readonly<Record<SyncReason, readonly [number, number]>> = {
  start: [0, 50],
  gap: [20, 250],
  reconnected: [50, 500],
  mismatch: [50, 500],
  silence: [50, 500],
  incarnation: [50, 500],
}

/** @param seed Any number; observers with different seeds ask at different moments. */
export function createFollower(seed: number): FollowerState {
  return {
    phase: { status: 'offline' },
    version: BEFORE_ANY_VERSION,
    chain: null,
    partial: null,
    confirmedAtMs: null,
    attempt: 0,
    silenceMs: SILENCE_MS,
    requests: 0,
    seed: seed >>> 0,
  }
}
