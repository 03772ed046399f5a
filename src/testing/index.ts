/**
 * `tenure/testing`: etcd and NATS in memory on virtual time, for fast tests of what is built on Tenure
 * and for simulations that a seed repeats exactly. The in-memory store and broadcast pass the same
 * contract suite as the real ones. For tests only: nothing here is durable or shared between processes.
 * `createTestCluster` is the whole of it; the parts below it serve finer tests.
 *
 * @example
 * const clock = createVirtualClock()
 * const random = createSeededRandom('a failing seed')
 * const etcd = createMemoryEtcd({ clock, random: random.fork('etcd') })
 * const nats = createMemoryNats({ clock, random: random.fork('nats') })
 * const process = clock.createProcess()
 * const store = etcd.connect('worker-1', { clock: process })
 * const broadcast = nats.connect('worker-1', { clock: process })
 * process.pause() // SIGSTOP: its leases run out while it knows nothing of it
 * await clock.advance(10_000)
 * process.resume()
 */

export type { ServeParts, TestWorkerOptions } from './cluster-roles.ts'
export type { RecordChange } from './cluster-truth.ts'
export type { Availability, EtcdSnapshot } from './etcd-cluster.ts'
export type { EtcdChange } from './etcd-data.ts'
export type { BroadcastFaults, CallFault, CallKind, DelayRange, StoreFaults } from './faults.ts'
export {
  type FenceConformanceOptions,
  type FenceConformanceReport,
  type FenceResource,
  fenceConformance,
  type StopCount,
} from './fence-conformance.ts'
export type {
  AppliedEffect,
  FenceViolation,
  FenceViolationName,
} from './fence-conformance-calls.ts'
export {
  type EffectStep,
  type FenceOwner,
  type FenceUnderTest,
  ownerInProcess,
  type StopAt,
  type WriteAttempt,
  type WriteOutcome,
  type WriteRequest,
} from './fence-conformance-owner.ts'
export { type OwnerProgram, startFenceOwner } from './fence-conformance-process.ts'
export { serveFenceOwner } from './fence-conformance-program.ts'
export type { MemoryBroadcast } from './memory-broadcast.ts'
export { createMemoryEtcd, type MemoryEtcd, type MemoryEtcdOptions } from './memory-etcd.ts'
export {
  createMemoryFence,
  type FenceEntry,
  type LateWrite,
  type MemoryFence,
  type RefusedEntry,
} from './memory-fence.ts'
export { createMemoryNats, type MemoryNats, type MemoryNatsOptions } from './memory-nats.ts'
export type { MemoryStore } from './memory-store.ts'
export type { ProcessClock, ProcessOptions } from './process-clock.ts'
export { createSeededRandom, type SeededRandom } from './seeded-random.ts'
export type { Cut } from './store-link.ts'
export { createTestCluster } from './test-cluster.ts'
export type {
  TestCluster,
  TestClusterOptions,
  TestObserver,
  TestServe,
  TestWorker,
  UntilOptions,
  WorkerProgram,
} from './test-cluster-types.ts'
export type {
  CutWay,
  Neighbour,
  ProcessState,
  TestProcess,
  TimedEvent,
} from './test-process.ts'
export { createVirtualClock, type VirtualClock } from './virtual-clock.ts'
