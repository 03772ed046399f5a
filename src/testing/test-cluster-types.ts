/** What `createTestCluster` is given and gives: the cluster and its processes, as a test sees them. */
import type { GroupConfig, GroupSettings } from '../core/group-config.ts'
import type { GroupName, PartitionId, SessionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { PartitionRecord } from '../core/partition-record.ts'
import type { TelemetryEvent } from '../ports/telemetry.ts'
import type { Observer } from '../runtime/observer-types.ts'
import type { Worker } from '../runtime/worker-options.ts'
import type { ServeParts, TestWorkerOptions } from './cluster-roles.ts'
import type { RecordChange } from './cluster-truth.ts'
import type { MemoryEtcd } from './memory-etcd.ts'
import type { MemoryFence } from './memory-fence.ts'
import type { MemoryNats } from './memory-nats.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { TestProcess } from './test-process.ts'
import type { VirtualClock } from './virtual-clock.ts'

export type TestClusterOptions = {
  /** Default `orders`. */
  readonly group?: string
  /** Default 8. */
  readonly partitions?: number
  /** Decides all that is left to chance. Default: always the same. */
  readonly seed?: string | number
  /** The group's protected resources refuse older tokens. Default false. */
  readonly fenced?: boolean
  readonly settings?: GroupSettings
}

export type TestWorker = TestProcess & { readonly worker: Worker }
export type TestServe = TestProcess & ServeParts
export type TestObserver = TestProcess & { readonly observer: Observer }

/**
 * Options, or what makes them for each life of the process. From a function TypeScript does not infer the
 * cursor's type; name it: `startWorker<Cursor>(…)`.
 */
export type WorkerProgram<Cursor> =
  | TestWorkerOptions<Cursor>
  | ((process: TestProcess) => TestWorkerOptions<Cursor>)

export interface TestCluster {
  readonly clock: VirtualClock
  readonly etcd: MemoryEtcd
  readonly nats: MemoryNats
  readonly random: SeededRandom
  readonly group: GroupName
  readonly keys: GroupKeys
  /** A protected resource that keeps the rule of `core/fence.ts`. */
  readonly fence: MemoryFence
  readonly workers: readonly TestWorker[]
  readonly serves: readonly TestServe[]
  readonly observers: readonly TestObserver[]

  /**
   * Starts a worker and waits until its session lives.
   * @example
   * const a = await cluster.startWorker('orders-1', {
   *   acquire: (p) => cluster.fence.seal(p.token),
   *   lost: (p, _, cause) => console.log(p.id, cause),
   * })
   */
  startWorker<Cursor = void>(name: string, program: WorkerProgram<Cursor>): Promise<TestWorker>
  /**
   * As `startWorker`, without waiting: etcd may be away. `started` tells.
   * @example
   * cluster.etcd.setAvailability('down')
   * const a = cluster.spawnWorker('orders-1', { run: work })
   */
  spawnWorker<Cursor = void>(name: string, program: WorkerProgram<Cursor>): TestWorker
  /**
   * Starts a process as `tenure serve` is one: rebalancer, map publisher, group service.
   * @example
   * const serve = await cluster.startServe('serve-1')
   * await cluster.run(serve.admin.setFreeze({ by: 'ann', why: 'deploy', untilMs: null }))
   */
  startServe(name: string): Promise<TestServe>
  /** As `startServe`, without waiting. */
  spawnServe(name: string): TestServe
  /**
   * An observer in a process of its own.
   * @example
   * const router = cluster.createObserver('router-1')
   * await cluster.until(() => router.observer.status === 'following')
   */
  createObserver(name: string, options?: { readonly staleAfterMs?: number }): TestObserver
  /** Another protected resource. */
  createFence(name: string): MemoryFence

  /** Lets so much time pass. */
  advance(durationMs: number): Promise<void>
  /** Lets time pass until the promise settles. */
  run<T>(promise: Promise<T>): Promise<T>
  /**
   * Lets time pass until the condition holds, which is looked at after each step.
   * @throws Error with the state of the cluster when it does not within `limitMs` (default a minute).
   * @example await cluster.until(() => cluster.owners().every((owner) => owner === 'orders-2'))
   */
  until(condition: () => boolean, options?: UntilOptions): Promise<void>

  /** The truth by etcd: per partition, the owner whose session lives. */
  owners(): readonly (string | null)[]
  /** The truth by etcd: the partition's record; null: never granted. */
  record(partition: PartitionId): PartitionRecord | null
  /** The truth by etcd: live members and their sessions. */
  members(): ReadonlyMap<string, SessionId>
  /** The group's settings; null before the first process has made it. */
  config(): GroupConfig | null
  /** Every change of the group's records there ever was, compacted or not. */
  history(): readonly RecordChange[]
  /** Calls back at each event of any process; returns how to stop. */
  onEvent(listener: (name: string, event: TelemetryEvent) => void): () => void
  /** The state of everything, for people. */
  describe(): string

  /** Everything heals: connections and their faults, pauses, etcd, NATS. What is dead stays dead. */
  heal(): void
  /**
   * Heals, then ends all processes as SIGTERM does.
   * @throws Error when a process died of a bug, or something of one is still scheduled.
   */
  close(): Promise<void>
}

export type UntilOptions = {
  readonly limitMs?: number
  /** What is waited for, in words, for the error. */
  readonly what?: string
}
