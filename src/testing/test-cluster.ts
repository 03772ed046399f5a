/**
 * `createTestCluster`: a whole group in memory and on virtual time. Workers, `serve` processes and
 * observers run the code that runs in production; etcd, NATS, the fence and time are this module's, and
 * fail when told to. A test of hours takes moments, and one seed gives one run, to the last step.
 *
 * Time passes only inside `advance`, `until`, `run` and the calls that say that they wait. A handler that
 * waits for something outside (a real timer, a socket) is not waited for.
 */
import type { GroupConfig } from '../core/group-config.ts'
import { type GroupName, groupName, type PartitionId, type SessionId } from '../core/ids.ts'
import { DEFAULT_KEY_PREFIX, type GroupKeys, groupKeys } from '../core/keys.ts'
import type { PartitionRecord } from '../core/partition-record.ts'
import type { TelemetryEvent } from '../ports/telemetry.ts'
import { ClusterProcess, type ProcessWorld } from './cluster-process.ts'
import { type ClusterGroup, runObserver, runServe, runWorker } from './cluster-roles.ts'
import { describeCluster } from './cluster-text.ts'
import { ClusterTruth, type RecordChange } from './cluster-truth.ts'
import { createMemoryEtcd, type MemoryEtcd } from './memory-etcd.ts'
import { createMemoryFence, type MemoryFence } from './memory-fence.ts'
import { createMemoryNats, type MemoryNats } from './memory-nats.ts'
import { createSeededRandom, type SeededRandom } from './seeded-random.ts'
import type {
  TestCluster,
  TestClusterOptions,
  TestObserver,
  TestServe,
  TestWorker,
  UntilOptions,
  WorkerProgram,
} from './test-cluster-types.ts'
import type { TestProcess } from './test-process.ts'
import { createVirtualClock } from './virtual-clock.ts'

const UNTIL_LIMIT_MS = 60_000
/** The dead's leases, and what was sent late, take less. */
const CLOSE_LIMIT_MS = 120_000

/**
 * @example
 * const cluster = await createTestCluster({ partitions: 4 })
 * const a = await cluster.startWorker('orders-1', { run: (p) => serve(p) })
 * await cluster.until(() => a.worker.partitions().length === 4)
 * a.pause() // beyond its session: the partitions go to others
 * await cluster.advance(10_000)
 * await cluster.close()
 */
export async function createTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const group = groupName(options.group ?? 'orders')
  const { partitions = 8, fenced = false } = options
  const settings = { partitions, fenced, ...options.settings }
  const keys = groupKeys(DEFAULT_KEY_PREFIX, group)
  return new ClusterInMemory({ group, keys, settings }, options.seed ?? 'test cluster')
}

class ClusterInMemory implements TestCluster {
  readonly clock = createVirtualClock()
  readonly random: SeededRandom
  readonly etcd: MemoryEtcd
  readonly nats: MemoryNats
  readonly fence: MemoryFence
  readonly workers: TestWorker[] = []
  readonly serves: TestServe[] = []
  readonly observers: TestObserver[] = []
  readonly #cluster: ClusterGroup
  readonly #truth: ClusterTruth
  readonly #world: ProcessWorld
  readonly #processes: ClusterProcess<object>[] = []
  readonly #listeners = new Set<(name: string, event: TelemetryEvent) => void>()
  /** Takes errors that nobody caught, to the process that they came from. */
  readonly #onStray: (error: unknown) => void

  constructor(cluster: ClusterGroup, seed: string | number) {
    this.#cluster = cluster
    this.random = createSeededRandom(seed)
    const { clock, random } = this
    this.etcd = createMemoryEtcd({ clock, random: random.fork('etcd') })
    this.nats = createMemoryNats({ clock, random: random.fork('nats') })
    this.fence = this.createFence('fence')
    this.#truth = new ClusterTruth(this.etcd, cluster.keys, clock)
    const onEvent = (name: string, event: TelemetryEvent) => {
      for (const listener of this.#listeners) listener(name, event)
    }
    this.#world = { clock, etcd: this.etcd, nats: this.nats, random, onEvent }
    this.#onStray = (error) => {
      if (!clock.blame(error)) throw error
    }
    process.on('unhandledRejection', this.#onStray)
    process.on('uncaughtException', this.#onStray)
  }

  get group(): GroupName {
    return this.#cluster.group
  }

  get keys(): GroupKeys {
    return this.#cluster.keys
  }

  async startWorker<Cursor>(name: string, program: WorkerProgram<Cursor>): Promise<TestWorker> {
    const worker = this.spawnWorker(name, program)
    await this.run(worker.started.then(() => worker.worker.ready))
    return worker
  }

  spawnWorker<Cursor>(name: string, program: WorkerProgram<Cursor>): TestWorker {
    const made: { process: TestProcess | null } = { process: null }
    const process = new ClusterProcess(this.#world, name, (life) => {
      // In the first life the process is still being made, so its program waits for the next turn.
      const begin = async () => {
        const options = typeof program === 'function' ? program(of(made.process)) : program
        return runWorker(this.#cluster, name, options, life)
      }
      return Promise.resolve().then(begin)
    })
    made.process = process
    return this.#register(process, ['worker'], this.workers)
  }

  async startServe(name: string): Promise<TestServe> {
    const serve = this.spawnServe(name)
    await this.run(serve.started)
    return serve
  }

  spawnServe(name: string): TestServe {
    const process = new ClusterProcess(this.#world, name, (life) => runServe(this.#cluster, life))
    return this.#register(process, ['service', 'view', 'admin', 'isLeader', 'map'], this.serves)
  }

  createObserver(name: string, options: { readonly staleAfterMs?: number } = {}): TestObserver {
    const process = new ClusterProcess(this.#world, name, (life) =>
      runObserver(this.#cluster, options, life),
    )
    return this.#register(process, ['observer'], this.observers)
  }

  createFence(name: string): MemoryFence {
    return createMemoryFence({ name, clock: this.clock })
  }

  async advance(durationMs: number): Promise<void> {
    await this.clock.advance(durationMs)
  }

  run<T>(promise: Promise<T>): Promise<T> {
    return this.clock.run(promise)
  }

  async until(condition: () => boolean, options: UntilOptions = {}): Promise<void> {
    const { limitMs = UNTIL_LIMIT_MS, what = condition.toString() } = options
    if (await this.clock.runUntil(condition, { limitMs })) return
    throw new Error(`not within ${limitMs} virtual ms: ${what}\n${this.describe()}`)
  }

  owners(): readonly (string | null)[] {
    return this.#truth.owners()
  }

  record(partition: PartitionId): PartitionRecord | null {
    return this.#truth.record(partition)
  }

  members(): ReadonlyMap<string, SessionId> {
    return this.#truth.members()
  }

  config(): GroupConfig | null {
    return this.#truth.config()
  }

  history(): readonly RecordChange[] {
    return this.#truth.history
  }

  onEvent(listener: (name: string, event: TelemetryEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  describe(): string {
    return describeCluster(this, this.#processes)
  }

  heal(): void {
    this.etcd.setDiskDelay(null)
    this.etcd.setAlarms([])
    this.etcd.acknowledgeDeadLeases(false)
    this.etcd.setAvailability('up')
    this.nats.start()
    for (const process of this.#processes) {
      process.calm()
      process.heal()
      process.resume()
    }
  }

  async close(): Promise<void> {
    this.heal()
    try {
      await this.run(Promise.all(this.#processes.map((process) => process.end())))
      // Leases of the dead run out, and what was sent late arrives.
      await this.clock.runUntil(() => this.clock.pending === 0, { limitMs: CLOSE_LIMIT_MS })
    } finally {
      process.off('unhandledRejection', this.#onStray)
      process.off('uncaughtException', this.#onStray)
    }
    const failed = this.#processes.find(({ failure }) => failure !== null)
    if (failed !== undefined) {
      throw new Error(`${failed.name} died of a bug`, { cause: failed.failure })
    }
    const left = this.#processes.filter((process) => process.process.pending > 0)
    if (left.length === 0) return
    const names = left.map(({ name, process: { pending } }) => `${name} (${pending})`)
    throw new Error(`still scheduled after the end: ${names.join(', ')}`)
  }

  /** The parts of a process show on it directly; each time those of its present life. */
  #register<Parts extends object>(
    process: ClusterProcess<Parts>,
    names: readonly (keyof Parts & string)[],
    among: (TestProcess & Parts)[],
  ): TestProcess & Parts {
    for (const name of names) {
      Object.defineProperty(process, name, { get: () => process.parts[name], enumerable: true })
    }
    const registered = process as unknown as TestProcess & Parts
    this.#processes.push(process as unknown as ClusterProcess<object>)
    among.push(registered)
    return registered
  }
}

function of(process: TestProcess | null): TestProcess {
  if (process === null) throw new Error('the process is not made yet')
  return process
}
