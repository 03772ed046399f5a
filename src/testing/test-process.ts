/** One process of a test cluster as a test sees it: what it did, and the switches by which it fails. */
import type { TelemetryEvent } from '../ports/telemetry.ts'
import type { MemoryBroadcast } from './memory-broadcast.ts'
import type { MemoryStore } from './memory-store.ts'
import type { ProcessClock } from './process-clock.ts'

export type TimedEvent = { readonly atMs: number; readonly event: TelemetryEvent }

/** What a process can be cut off from. */
export type Neighbour = 'etcd' | 'nats' | 'both'
/** `out`: what it sends does not arrive; `in`: what is sent to it does not. */
export type CutWay = 'in' | 'out' | 'both'

export type ProcessState = 'starting' | 'running' | 'paused' | 'ended' | 'killed'

export interface TestProcess {
  readonly name: string
  /** 1 in the first life, one more after each restart. */
  readonly life: number
  readonly state: ProcessState
  /** The clock of this life. */
  readonly process: ProcessClock
  /** This life's connections, with their faults. */
  readonly store: MemoryStore
  readonly broadcast: MemoryBroadcast
  /** The newest few thousand events of all lives. */
  readonly events: readonly TimedEvent[]
  /** Resolves when this life has started; rejects when it could not, or was killed before. */
  readonly started: Promise<void>
  /** Why this life ended, when it did not end as it was told to. */
  readonly exitError: Error | null
  /** A bug: the process died of a broken invariant or of an error that nobody caught. Stays for good. */
  readonly failure: Error | null
  /** SIGSTOP and SIGCONT. */
  pause(): void
  resume(): void
  /** The event loop is blocked for a while; then all that came due meanwhile runs. */
  stall(durationMs: number): void
  /** SIGKILL: its session stands until it runs out. */
  kill(): void
  /** As SIGTERM does; time runs until it has ended. */
  stop(): Promise<void>
  /** SIGKILL unless it has ended already, then another life; time runs until that has started. */
  restart(): Promise<void>
  /** As `restart`, without waiting. */
  respawn(): void
  /** Cuts this process off, without a word to either side. */
  isolate(from?: Neighbour, way?: CutWay): void
  /** Its connections are whole again. */
  heal(): void
  /** Resolves after a while of virtual time, in this life. */
  sleep(durationMs: number): Promise<void>
}
