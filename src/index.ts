/** The public entry: workers, observers, and the words they use. */

export { type CreateObserverOptions, createObserver } from './composition/create-observer.ts'
export type { ConnectionOptions } from './composition/environment.ts'
export { type StartWorkerOptions, startWorker } from './composition/start-worker.ts'
export type { GroupConfig, GroupSettings } from './core/group-config.ts'
export { partitionOf } from './core/partition-key.ts'
export { decodeSubjectToken, encodeSubjectToken } from './core/subject-token.ts'
export { isTenureError, TenureError, type TenureErrorCode } from './core/tenure-error.ts'
export { comparePositions, type Position, sortableToken, type Token } from './core/token.ts'
export type { LossCause, Telemetry, TelemetryEvent } from './ports/telemetry.ts'
export type { Observer } from './runtime/observer-types.ts'
export { withCursor } from './runtime/with-cursor.ts'
export type {
  HeldPartition,
  Partition,
  PartitionHandlers,
  Worker,
  WorkLimits,
  WorkOutcome,
} from './runtime/worker-options.ts'
