/** One message in its handler's hands, in either mode: what is given, the tries, and the dead letter. */
import type { Clock } from '../ports/clock.ts'
import type { StreamMessage } from '../ports/streams.ts'
import type { Partition } from '../runtime/worker-options.ts'
import { attempt } from './attempts.ts'
import type { PartitionedConsumerOptions, Work, WorkMessage } from './consumer-options.ts'
import { deadLetter, publishLetter } from './dead-letters.ts'
import type { FencedResult } from './fenced-results.ts'
import { isOutage } from './outages.ts'
import { keyOfSubject, type WorkSubjects } from './subjects.ts'

export type Consumer = {
  readonly options: PartitionedConsumerOptions
  readonly clock: Clock
  readonly subjects: WorkSubjects
}

const WINDOW_PER_RUNNING = 8
const FAILURES_MAX = 5

/** False when it was left to the next owner. */
export function tryMessage(
  { options, clock, subjects }: Consumer,
  p: Partition,
  message: StreamMessage,
  failuresBefore: number,
  {
    handle,
    passOver,
  }: {
    readonly handle: (work: Work) => FencedResult | Promise<FencedResult>
    readonly passOver: () => void | Promise<void> | undefined
  },
): Promise<boolean> {
  const { token } = p
  const given = workMessage(message)
  const idempotencyKey = `${subjects.stream}/${message.sequence}`
  return attempt(p, {
    clock,
    backOff: options.backOff ?? {},
    failuresBefore,
    failuresMax: options.failuresMax ?? FAILURES_MAX,
    run: (number) =>
      handle({
        attempt: number,
        ...{ message: given, token, partition: p, signal: p.signal, idempotencyKey },
      }),
    isOutage: options.isOutage ?? isOutage,
    onFailure: (failures, error) => options.onFailure?.({ token, message: given, failures, error }),
    bury: async (failures, error) => {
      const letter = deadLetter(subjects.stream, message, { failures, error, token })
      // The letter first: passed over without one, the message would be gone.
      await publishLetter(options.streams, subjects, letter)
      await passOver()
      options.onDeadLetter?.(letter)
    },
  })
}

/** Messages taken and not done. One at a time in durable mode keeps the order over all owners. */
export function windowOf({ options }: Consumer): number {
  const { concurrency = 1, window = WINDOW_PER_RUNNING * concurrency } = options
  return options.mode === 'durable' && concurrency === 1 ? 1 : Math.max(window, concurrency)
}

function workMessage(message: StreamMessage): WorkMessage {
  const { subject, data, sequence, messageId, storedAtMs } = message
  return { key: keyOfSubject(subject), data, subject, sequence, messageId, storedAtMs }
}

export function checkpointName({ options, subjects }: Consumer): string {
  const named = options.mode === 'durable' ? undefined : options.checkpoint.name
  return named ?? subjects.stream
}
