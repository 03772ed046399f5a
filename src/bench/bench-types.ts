/**
 * The words of the benchmark. A *scenario* has *cases*; in each case several *contenders* (Tenure, the
 * limit, the rivals) are measured in turn, round after round, in one run on the same servers. One
 * measurement gives *figures*; `evaluate.ts` makes rows of them.
 *
 * The *limit* is what the servers would allow: the same transactions and bytes with no logic behind
 * them. Not promised: that absolute figures of two runs compare; only ratios inside one run do.
 */
import type { EtcdStoreOptions } from '../etcd/etcd-store.ts'
import type { NatsOptions } from '../nats/nats-link.ts'
import type { BenchProcesses } from './bench-processes.ts'

export const SCENARIO_NAMES = [
  'acquire',
  'churn',
  'failover',
  'gate',
  'lookup',
  'broadcast',
  'fence',
  'scale-out',
  'rolling',
  'scale',
] as const
export type ScenarioName = (typeof SCENARIO_NAMES)[number]

/** What one measurement of one contender gave: one value, or many samples of the same kind. */
export type Figure = {
  readonly metric: string
  readonly unit: string
  readonly values: readonly number[]
  /** What a reader must know beside the number. */
  readonly note?: string
}
export type Figures = readonly Figure[]

export type Contender = {
  readonly name: string
  measure(round: number): Promise<Figures>
}

export type Statistic = 'median' | 'p50' | 'p99' | 'max'
export type Target = { readonly atLeast: number } | { readonly atMost: number }

/** One row of the result: Tenure's metric, alone or as a ratio to another contender's. */
export type Comparison = {
  readonly metric: string
  readonly statistic: Statistic
  /** Null: the value itself is held against the target. */
  readonly against: string | null
  /** Of the other contender; default the same metric. */
  readonly againstMetric?: string
  readonly target: Target | null
  /** Who shows, in the same run, what of the target nobody can reach, and what it is made of. */
  readonly bound?: { readonly contender: string; readonly why: string }
  /** Below this the other contender's value shows a machine too busy to judge by. */
  readonly voidBelow?: number
}

export type BenchCase = {
  readonly name: string
  readonly rounds: number
  readonly contenders: readonly Contender[]
  readonly comparisons: readonly Comparison[]
  /** Given to rivals that run this case; null: none does. */
  readonly rivalSettings: RivalSettings | null
  close?(): Promise<void>
}

export type Scenario = {
  readonly name: ScenarioName
  readonly title: string
  /** Targets of the ratio to a rival, by the rival's name, and the case that is held against them. */
  readonly rivalTargets?: Readonly<
    Record<string, { readonly metric: string; readonly target: Target; readonly judgedIn: string }>
  >
  /** Opens what its cases need; called once, cases run in this order. */
  cases(context: BenchContext): AsyncIterable<BenchCase>
}

export type BenchContext = {
  readonly quick: boolean
  /** Cases of more partitions are left out. */
  readonly partitionsMax: number
  readonly seed: number
  /** Unique in this run: names of groups and prefixes begin with it. */
  readonly runId: string
  readonly servers: BenchServers
  readonly processes: BenchProcesses
  /** For servers and files of a scenario's own; removed at the end. */
  readonly folder: string
  progress(text: string): void
}

export type BenchServers = {
  readonly etcd: EtcdStoreOptions
  readonly nats: NatsOptions
  /** True: they are this run's own, and may be compacted. */
  readonly embedded: boolean
}

/** What a rival is told of a case. */
export type RivalSettings = {
  readonly caseName: string
  readonly partitions: number
  readonly members: number
  readonly leaseTtlMs: number
  readonly itemMs: number
}

/** One of the libraries and recipes that a user would pick instead (`bench/rivals/`). */
export type Rival = {
  readonly name: string
  version(): Promise<string>
  /** Why it cannot run here; null: it can. */
  isPresent(): Promise<string | null>
  readonly promises: readonly string[]
  readonly doesNotPromise: readonly string[]
  /** No figures: it does not take part in this scenario. */
  run(
    scenario: ScenarioName,
    settings: RivalSettings & {
      readonly round: number
      readonly runId: string
      readonly seed: number
      readonly quick: boolean
      readonly etcdEndpoints: readonly string[]
      readonly natsServers: readonly string[]
      readonly folder: string
    },
  ): Promise<Figures>
}

/** One row of the results file. */
export type ResultRow = {
  readonly scenario: ScenarioName
  readonly case: string
  readonly contender: string
  readonly metric: string
  readonly value: number
  readonly unit: string
  readonly against: string | null
  readonly ratio: number | null
  readonly target: Target | null
  /** Null: no target, or the ratio is void. */
  readonly met: boolean | null
  /** The ratio of the contender that is the least possible; null: none is named. */
  readonly bound: { readonly ratio: number; readonly why: string } | null
  readonly statistic: Statistic
  readonly runs: number
  readonly samples: number
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly note: string
}

export type BenchReport = {
  readonly machine: Readonly<Record<string, string | number>>
  readonly versions: Readonly<Record<string, string>>
  readonly seed: number
  readonly quick: boolean
  readonly startedAt: string
  readonly tookS: number
  readonly rivals: readonly {
    readonly name: string
    readonly absent: string | null
    readonly promises: readonly string[]
    readonly doesNotPromise: readonly string[]
  }[]
  readonly results: readonly ResultRow[]
}
