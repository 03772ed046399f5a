/**
 * What the composition root gives the command line: the verbs that run something for a while, and the
 * means of `doctor`. Each loads its own heavy modules when it is called, so that `tenure --help` and
 * operators' verbs load none. A verb without an implementation is not offered.
 */
import type { BenchReport } from '../bench/bench-types.ts'
import type { HistoryLog } from '../evidence/history-log.ts'
import type { DevEnvironment } from './dev-environment.ts'
import type { DoctorMeans } from './doctor-facts.ts'
import type { TenureConfig } from './tenure-config.ts'

export type DevOptions = {
  /** How long it runs, ms; null: until Ctrl-C. */
  readonly forMs: number | null
  /** File for the JSON report; null: none. */
  readonly reportFile: string | null
  readonly workers: number
  readonly partitions: number
  /** Port of its `serve` process; null: the usual one, or any free one where that is taken. */
  readonly port: number | null
  /** Seed of kills, pauses and moves; null: a fresh one. */
  readonly seed: number | null
  /** Log settings and settings of the group; its servers are the environment's own. */
  readonly config: TenureConfig
}

export type WorkerStart = {
  /** Absolute path of the module whose default or `worker` export is the options of a worker. */
  readonly script: string | null
  /** The running `tenure dev`, whose demo worker runs when there is no script. One of both is set. */
  readonly dev: DevEnvironment | null
}

export type BenchRequest = {
  /** Empty: all. */
  readonly scenarios: readonly string[]
  readonly quick: boolean
  /** Cases of more partitions are left out. */
  readonly partitionsMax: number
  readonly seed: number
  /** Null: embedded servers of its own. */
  readonly etcd: TenureConfig['etcd'] | null
  readonly nats: TenureConfig['nats'] | null
  /** Absolute path of a module that exports `rivals`; null: none. */
  readonly rivalsModule: string | null
  /** Folder for a CPU profile of each process; null: none. */
  readonly profileFolder: string | null
  /** Says what is being measured. */
  readonly progress: (text: string) => void
}

export type BenchAnswer = {
  readonly report: BenchReport
  readonly markdown: string
  /** One picture per scenario, by its name. */
  readonly svg: ReadonlyMap<string, string>
}

/**
 * Each resolves with the exit code once everything is closed. `interrupted` fires at the first SIGINT
 * or SIGTERM, from the start of the process on; what a second one does is for them to say.
 */
export type CommandImplementations = DoctorMeans & {
  readonly serve?: (config: TenureConfig, interrupted: AbortSignal) => Promise<number>
  readonly worker?: (
    config: TenureConfig,
    start: WorkerStart,
    interrupted: AbortSignal,
  ) => Promise<number>
  readonly dev?: (options: DevOptions, interrupted: AbortSignal) => Promise<number>
  /** Measures; @throws TenureError `invalid-argument` for a scenario that there is not. */
  readonly bench?: (request: BenchRequest, interrupted: AbortSignal) => Promise<BenchAnswer>
  /** A group's ownership history as etcd still keeps it. */
  readonly readHistory?: (config: TenureConfig, group: string) => Promise<HistoryLog>
}
