/** `tenure/work`: work on partitions, put together from the adapters of this process. */
import { decodeGroupConfig } from '../core/group-config.ts'
import { groupName } from '../core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../core/keys.ts'
import { createTenureError } from '../core/tenure-error.ts'
import { jetStreamOver } from '../nats/jetstream.ts'
import { type NatsOptions, openNatsLink } from '../nats/nats-link.ts'
import type { Streams } from '../ports/streams.ts'
import type { PartitionedConsumerOptions } from '../work/consumer-options.ts'
import { type ConsumerHandlers, createPartitionedConsumer } from '../work/partitioned-consumer.ts'
import {
  createKeyPublisher,
  type KeyPublisher,
  type KeyPublisherOptions,
} from '../work/publisher.ts'
import {
  createScheduledJobs,
  type ScheduledJob,
  type ScheduledJobsOptions,
  type ScheduleHandlers,
} from '../work/schedule.ts'
import { clock, shareStore } from './connections.ts'
import { type ConnectionOptions, readEnvironment } from './environment.ts'

export type {
  Delivery,
  PublishOutcome,
  StreamMessage,
  StreamSettings,
  Streams,
} from '../ports/streams.ts'
export type { BackOff } from '../work/attempts.ts'
export type {
  CheckpointConsumerOptions,
  CheckpointedWork,
  ConsumerFailure,
  ConsumerLimits,
  DurableConsumerOptions,
  PartitionedConsumerOptions,
  Work,
  WorkCheckpoint,
  WorkMessage,
} from '../work/consumer-options.ts'
export { type DeadLetter, readDeadLetter } from '../work/dead-letters.ts'
export { everyInterval, type Missed } from '../work/due.ts'
export type { FencedResult } from '../work/fenced-results.ts'
export type { KeyPublisher, PublishedMessage } from '../work/publisher.ts'
export type { DueRun, ScheduledJob, ScheduledJobsOptions } from '../work/schedule.ts'
export { ensureWorkStreams, type WorkStreamSettings, workSubjects } from '../work/subjects.ts'

export type ConnectedStreams = Streams & { close(): Promise<void> }

const CONNECT_TIMEOUT_MS = 5000
const CALL_TIMEOUT_MS = 5000

/**
 * Streams on JetStream, over a connection of their own, which outlives every outage.
 * @throws TenureError `broadcast-unreachable` when no server answers within 5 s.
 */
export async function connectStreams(
  options: { readonly nats?: NatsOptions } = {},
): Promise<ConnectedStreams> {
  const link = openNatsLink(options.nats ?? readEnvironment().nats)
  if (!(await link.waitConnected(CONNECT_TIMEOUT_MS))) {
    const lastError = link.lastError()
    await link.close()
    throw createTenureError('broadcast-unreachable', `NATS is not reachable: ${lastError}`)
  }
  return { ...jetStreamOver(link), close: () => link.close() }
}

/**
 * Handlers for `startWorker` that work on the partition's messages (work/partitioned-consumer.ts says
 * what each mode promises).
 *
 * @throws TenureError `invalid-argument`
 * @example
 * const streams = await connectStreams()
 * const worker = await startWorker({
 *   group: 'orders',
 *   ...partitionedConsumer({
 *     streams,
 *     prefix: 'orders',
 *     seal: (token) => fence.seal(token),
 *     checkpoint: { load: (token, name) => readCheckpoint(pool, token, { name }) },
 *     handle: ({ message, token, checkpoint, idempotencyKey }) =>
 *       fencedTransaction(pool, token, { idempotencyKey, checkpoint }, (client) => apply(client, message)),
 *   }),
 * })
 */
export function partitionedConsumer(options: PartitionedConsumerOptions): ConsumerHandlers {
  return createPartitionedConsumer(options, clock)
}

/**
 * Handlers for `startWorker` that run jobs at their due times, each by the owner of its key's partition.
 * @throws TenureError `invalid-argument`
 */
export function scheduledJobs<Job extends ScheduledJob>(
  options: ScheduledJobsOptions<Job>,
): ScheduleHandlers<Job> {
  return createScheduledJobs(options, clock)
}

export type CreatePublisherOptions = Omit<KeyPublisherOptions, 'streams' | 'partitions'> &
  Pick<ConnectionOptions, 'nats' | 'etcd' | 'keyPrefix'> & {
    /** Given, they are used and not closed. */
    readonly streams?: Streams
  } & (
    | { readonly partitions: number }
    /** P is read once from the group's settings in etcd. */
    | { readonly group: string }
  )

export type Publisher = KeyPublisher & { close(): Promise<void> }

/**
 * @throws TenureError `unknown-group`, `store-unreachable`, `broadcast-unreachable`, `invalid-argument`
 * @example
 * const publisher = await createPublisher({ prefix: 'orders', group: 'orders' })
 * await publisher.publish('customer-17', JSON.stringify(order), { messageId: order.id })
 */
export async function createPublisher(options: CreatePublisherOptions): Promise<Publisher> {
  const partitions =
    'partitions' in options ? options.partitions : await readPartitions(options.group, options)
  const own = options.streams === undefined ? await connectStreams(options) : null
  const streams = options.streams ?? own
  if (streams === null) throw createTenureError('invariant-broken', 'no streams')
  const publisher = createKeyPublisher({ ...options, streams, partitions }, clock)
  return {
    ...publisher,
    close: async () => {
      await publisher.idle()
      await own?.close()
    },
  }
}

async function readPartitions(
  name: string,
  options: Pick<ConnectionOptions, 'etcd' | 'keyPrefix'>,
): Promise<number> {
  const environment = readEnvironment()
  const group = groupName(name)
  const keys = groupKeys(options.keyPrefix ?? environment.keyPrefix ?? DEFAULT_KEY_PREFIX, group)
  const store = await shareStore(options.etcd ?? environment.etcd)
  try {
    const reply = await store.value.transact(
      { compare: [], success: [{ type: 'get', key: keys.config }], failure: [] },
      { timeoutMs: CALL_TIMEOUT_MS },
    )
    if (!reply.ok) throw createTenureError('store-unreachable', `group ${group}: ${reply.detail}`)
    const [got] = reply.value.results
    if (got?.type === 'get' && got.found !== null) {
      return decodeGroupConfig(got.found.value).partitions
    }
    throw createTenureError('unknown-group', `there is no group ${group}: start a worker first`)
  } finally {
    await store.release()
  }
}
