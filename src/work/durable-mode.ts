/**
 * The durable mode's reading and handling: a named consumer per partition, acknowledged after the effect
 * (work/partitioned-consumer.ts says what that promises).
 */
import type { Delivery } from '../ports/streams.ts'
import type { Partition } from '../runtime/worker-options.ts'
import { type Consumer, tryMessage, windowOf } from './handled-message.ts'
import type { Lanes } from './lanes.ts'
import { keyOfSubject } from './subjects.ts'

const ACK_WAIT_MS = 3000
const EXTENSIONS_PER_WAIT = 3

/** Takes what the partition's consumer at the server hands out, until the signal. */
export async function takeDurable(
  consumer: Consumer,
  p: Partition,
  lanes: Lanes,
  signal: AbortSignal,
): Promise<void> {
  const { options, subjects } = consumer
  if (options.mode !== 'durable') return
  const { name = 'work' } = options
  const deliveries = options.streams.readDurable({
    stream: subjects.stream,
    subject: subjects.partition(p.id),
    consumer: `${name}-${p.id}`,
    ackWaitMs: options.ackWaitMs ?? ACK_WAIT_MS,
    unacknowledgedMax: windowOf(consumer),
    signal,
  })
  // The server may hand out again, after an outage, what is still worked on here.
  const held = new Set<number>()
  for await (const delivery of deliveries) {
    const { sequence, subject } = delivery
    if (held.has(sequence)) continue
    held.add(sequence)
    const extending = keepExtending(consumer, delivery)
    const end = () => {
      extending.end()
      held.delete(sequence)
    }
    const work = () => handleDurable(consumer, p, delivery).finally(end)
    lanes.add(keyOfSubject(subject), work, () => {
      end()
      delivery.giveBack()
    })
    await lanes.room()
  }
}

async function handleDurable(consumer: Consumer, p: Partition, delivery: Delivery): Promise<void> {
  const { options } = consumer
  const before = delivery.deliveries - 1
  try {
    const handle = options.mode === 'durable' ? options.handle : null
    const isDone = await tryMessage(consumer, p, delivery, before, {
      handle: (work) => handle?.(work),
      passOver: () => {},
    })
    // Not acknowledged for certain: it comes again, which this mode allows.
    if (isDone) await delivery.acknowledge()
    else delivery.giveBack()
  } catch (error: unknown) {
    delivery.giveBack()
    throw error
  }
}

/** Tells the server, while a message is held, that it is. */
function keepExtending({ options, clock }: Consumer, delivery: Delivery): { end(): void } {
  const ackWaitMs = (options.mode === 'durable' ? options.ackWaitMs : undefined) ?? ACK_WAIT_MS
  const extend = () => {
    delivery.extend()
    timer = clock.schedule(ackWaitMs / EXTENSIONS_PER_WAIT, extend)
  }
  let timer = clock.schedule(ackWaitMs / EXTENSIONS_PER_WAIT, extend)
  return { end: () => timer.cancel() }
}
