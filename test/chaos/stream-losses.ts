/**
 * Orders that the stream acknowledged and then lost, or put where no reader looks any more. Old NATS
 * servers do both: a new leader of the stream goes back behind what was acknowledged, and gives the same
 * sequence numbers out again. An order that gets a number at or below one of its partition that was
 * applied before, and is no longer in the stream, lies behind the checkpoint. Neither is a worker's fault.
 */
import type { AcceptedEffect } from './accept-store.ts'
import type { PublishedOrder } from './producer-program.ts'

/** Ids of the orders by the sequence at which the stream holds them at the end. */
export type StoredOrders = ReadonlyMap<number, string>

export type StreamLosses = {
  /** Acknowledged and not in the stream. */
  readonly gone: ReadonlySet<string>
  /** Acknowledged, in the stream, and behind what it had before it went back. */
  readonly behind: ReadonlySet<string>
}

export function findStreamLosses(
  published: readonly PublishedOrder[],
  effects: readonly AcceptedEffect[],
  stored: StoredOrders,
): StreamLosses {
  const kept = new Set(stored.values())
  const applied = new Set(effects.map(({ input }) => input))
  const overtaken = new Map<number, number>()
  for (const { input, partition, sequence } of effects) {
    if (stored.get(sequence) === input) continue
    overtaken.set(partition, Math.max(overtaken.get(partition) ?? 0, sequence))
  }
  const gone = published.filter(({ input }) => !kept.has(input))
  const behind = published.filter(
    ({ input, partition, sequence }) =>
      kept.has(input) && !applied.has(input) && sequence <= (overtaken.get(partition) ?? 0),
  )
  const ids = (orders: readonly PublishedOrder[]) => new Set(orders.map(({ input }) => input))
  return { gone: ids(gone), behind: ids(behind) }
}
