/**
 * Publishes by key: onto the subject of the key's partition, until the stream has acknowledged it. An
 * unknown outcome is settled by publishing again under the same id, which the stream knows for its
 * duplicate window; so the deadline stays well below that.
 *
 * Messages of one key go out one after the other, in the order in which they were given; those of
 * different keys at once, up to a limit, beyond which `publish` waits its turn.
 *
 * Not promised: that what failed was not stored, where the error's `details.outcome` is `unknown-outcome`.
 */
import type { PartitionId } from '../core/ids.ts'
import { partitionOf } from '../core/partition-key.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Clock } from '../ports/clock.ts'
import type { PublishOutcome, Streams } from '../ports/streams.ts'
import { Lanes } from './lanes.ts'
import { workSubjects } from './subjects.ts'

export type KeyPublisherOptions = {
  readonly streams: Streams
  readonly prefix: string
  /** P of the group that works on the messages. */
  readonly partitions: number
  /** Messages under way at once. Default 256. */
  readonly inFlightMax?: number
  /** How long one message is tried. Default 30,000 ms. */
  readonly deadlineMs?: number
}

export type PublishedMessage = {
  readonly partition: PartitionId
  readonly sequence: number
  /** The stream had a message of this id; `sequence` is that one's. */
  readonly duplicate: boolean
}

export interface KeyPublisher {
  /**
   * @param messageId the same for the same message, also after a restart of the publisher
   * @throws TenureError `timed-out` (`details.outcome`), `conflict` when the server refuses it
   */
  publish(
    key: string,
    data: Uint8Array | string,
    options: { readonly messageId: string },
  ): Promise<PublishedMessage>
  /** Resolves once nothing is under way. */
  idle(): Promise<void>
}

const IN_FLIGHT_MAX = 256
const DEADLINE_MS = 30_000
const TRY_TIMEOUT_MS = 2000
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 1000

/** @throws TenureError `invalid-argument` for a prefix that is no subject, or no partitions. */
export function createKeyPublisher(options: KeyPublisherOptions, clock: Clock): KeyPublisher {
  const { partitions, inFlightMax = IN_FLIGHT_MAX } = options
  const subjects = workSubjects(options.prefix)
  if (!Number.isInteger(partitions) || partitions < 1) {
    throw createTenureError('invalid-argument', `partitions is ${partitions}, must be 1 or more`)
  }
  const lanes = new Lanes({
    runningMax: inFlightMax,
    heldMax: Number.POSITIVE_INFINITY,
  })
  return {
    publish: (key, data, { messageId }) =>
      new Promise((resolve, reject) => {
        const partition = partitionOf(key, partitions)
        const subject = subjects.message(partition, key)
        const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
        lanes.add(key, () =>
          publishUntilStored(options, clock, { subject, bytes, messageId }).then(
            ({ sequence, duplicate }) => resolve({ partition, sequence, duplicate }),
            reject,
          ),
        )
      }),
    idle: () => lanes.idle(),
  }
}

async function publishUntilStored(
  { streams, deadlineMs = DEADLINE_MS }: KeyPublisherOptions,
  clock: Clock,
  message: { readonly subject: string; readonly bytes: Uint8Array; readonly messageId: string },
): Promise<PublishOutcome & { readonly ok: true }> {
  const { subject, bytes, messageId } = message
  const endMs = clock.monotonicMs() + deadlineMs
  // Once unknown, a later try that was certainly not sent says nothing of the first.
  let outcomeKnown = true
  for (let retryMs = RETRY_FIRST_MS; ; retryMs = Math.min(RETRY_MAX_MS, retryMs * 2)) {
    const leftMs = Math.max(1, endMs - clock.monotonicMs())
    const timeoutMs = Math.min(TRY_TIMEOUT_MS, leftMs)
    const outcome = await streams.publish(subject, bytes, { messageId, timeoutMs })
    if (outcome.ok) return outcome
    const { reason, detail } = outcome
    if (reason === 'refused') {
      throw createTenureError('conflict', `message ${messageId} was refused: ${detail}`, {
        details: { subject, messageId },
      })
    }
    if (reason === 'unknown-outcome') outcomeKnown = false
    if (clock.monotonicMs() + retryMs >= endMs) {
      throw createTenureError(
        'timed-out',
        `message ${messageId} was not acknowledged within ${deadlineMs} ms: ${detail}`,
        { details: { subject, messageId, outcome: outcomeKnown ? 'not-sent' : 'unknown-outcome' } },
      )
    }
    await new Promise<void>((resolve) => void clock.schedule(retryMs, resolve))
  }
}
