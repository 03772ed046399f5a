/**
 * What the connections of one process, or of all, suffer from right now. Faults overlap, so each holds an
 * effect of its own while it lasts, and what applies is the sum of all: the end of one never ends another.
 */
import type { MemoryBroadcast, MemoryStore } from '../../src/testing/index.ts'

export type Weather = {
  readonly cutRequests: boolean
  readonly cutReplies: boolean
  readonly storeRefused: boolean
  readonly natsCut: boolean
  readonly natsDeaf: number
  readonly natsMute: number
  readonly natsDelayMs: number
  readonly loseReply: number
  readonly executeLate: number
  readonly doubled: number
  readonly staleRead: number
  readonly skipHistory: number
  readonly requestDelayMs: number
  readonly frozenReads: boolean
}

export type Effect = Partial<Weather>

export const FAIR: Weather = {
  ...{ cutRequests: false, cutReplies: false, storeRefused: false, natsCut: false },
  ...{ natsDeaf: 0, natsMute: 0, natsDelayMs: 0, loseReply: 0, executeLate: 0, doubled: 0 },
  ...{ staleRead: 0, skipHistory: 0, requestDelayMs: 0, frozenReads: false },
}

/** The worst of each. */
export function sumOf(effects: Iterable<Effect>): Weather {
  const sum: Record<string, boolean | number> = { ...FAIR }
  for (const effect of effects) {
    for (const [name, value] of Object.entries(effect)) {
      const before = sum[name]
      sum[name] =
        typeof value === 'number' ? Math.max(value, before as number) : value || (before as boolean)
    }
  }
  return sum as unknown as Weather
}

export function applyToStore(store: MemoryStore, before: Weather, now: Weather): void {
  const { faults } = store
  faults.loseReplyChance = now.loseReply
  faults.executeLateChance = now.executeLate
  faults.staleReadChance = now.staleRead
  faults.skipHistoryChance = now.skipHistory
  faults.requestDelay = { minMs: 0.3 + now.requestDelayMs / 2, maxMs: 0.7 + now.requestDelayMs }
  if (before.frozenReads !== now.frozenReads) {
    if (now.frozenReads) store.freezeReads()
    else store.thawReads()
  }
  if (before.storeRefused !== now.storeRefused) {
    if (now.storeRefused) store.disconnect()
    else store.reconnect()
  }
  if (before.cutRequests !== now.cutRequests || before.cutReplies !== now.cutReplies) {
    if (now.cutRequests || now.cutReplies) {
      store.cutOff({ requests: now.cutRequests, replies: now.cutReplies })
    } else store.heal()
  }
}

export function applyToBroadcast(broadcast: MemoryBroadcast, before: Weather, now: Weather): void {
  const { faults } = broadcast
  faults.loseDeliveredChance = now.natsDeaf
  faults.losePublishedChance = now.natsMute
  faults.deliverDelay = { minMs: 0.3 + now.natsDelayMs / 2, maxMs: 0.7 + now.natsDelayMs }
  if (before.natsCut === now.natsCut) return
  if (now.natsCut) broadcast.disconnect()
  else broadcast.reconnect()
}
