/** What the test and a worker process say to each other over the pipe between them. */
import type { GroupSettings } from '../../../src/core/group-config.ts'
import type { Token } from '../../../src/core/token.ts'
import type { LossCause, TelemetryEvent } from '../../../src/ports/telemetry.ts'

export type WorkerProgramOptions = {
  readonly group: string
  readonly member: string
  readonly etcdEndpoints: readonly string[]
  readonly natsServers: readonly string[]
  readonly settings?: GroupSettings
  /** Where the fenced resource is. */
  readonly resourceUrl: string
  /** Pause between two pieces of work of one partition. */
  readonly workEveryMs: number
  /** Each piece of work asks the resource before it writes, so that a test can stand in between. */
  readonly asksFirst: boolean
  /** Joins the group only when told to. */
  readonly waitsForGo: boolean
}

/** A worker's report; `atMs` on the machine's monotonic clock, which all processes share. */
export type WorkerLine = { readonly atMs: number } & (
  | { readonly type: 'started' }
  | { readonly type: 'ready' }
  | { readonly type: 'telemetry'; readonly event: TelemetryEvent }
  | { readonly type: 'acquired'; readonly token: Token }
  | { readonly type: 'released'; readonly token: Token }
  | { readonly type: 'lost'; readonly token: Token; readonly cause: LossCause }
  /** The gate's answer to work that asked first, just before it writes. */
  | { readonly type: 'checked'; readonly token: Token; readonly held: boolean }
  /** A new piece of work was refused by the gate. */
  | { readonly type: 'not-admitted'; readonly token: Token; readonly reason: unknown }
  /** The resource refused a write. */
  | { readonly type: 'refused'; readonly token: Token }
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
)

export type WorkerCommand = { readonly type: 'go' | 'throw' }
