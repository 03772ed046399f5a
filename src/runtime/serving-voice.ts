/**
 * Speaks for a worker over the broadcast: which grants it serves, in the name of its current session,
 * and listens to what the map says of its partitions.
 */
import type { GroupName, MemberName, PartitionId, SessionId } from '../core/ids.ts'
import { decodeDelta, mapSubjects } from '../core/map-wire.ts'
import type { Position } from '../core/token.ts'
import type { Broadcast } from '../ports/broadcast.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { decodeFrame } from './map-frames.ts'
import { createServingHints, type ServingHints } from './serving-hints.ts'

export type ServingVoiceOptions = {
  readonly group: GroupName
  readonly member: MemberName
  readonly broadcast: Broadcast
  readonly clock: Clock
  readonly random: Random
  readonly movesUnderWay: () => number
}

export interface ServingVoice {
  sessionLive(session: SessionId): void
  announce(partition: PartitionId, position: Position, serving: boolean): void
  /**
   * Each position that the map's deltas name. Hints, for a member that etcd's news do not reach: while
   * they do, the deltas say nothing that it does not know by then, and are not read.
   * @param newsAgeMs how old the last news of etcd are
   */
  listen(heard: (partition: PartitionId, position: Position) => void, newsAgeMs: () => number): void
  close(): void
}

/** The watch brings a change within this, or it brings none for now. */
const NEWS_MS = 500

export function createServingVoice(options: ServingVoiceOptions): ServingVoice {
  const { group, broadcast } = options
  let hints: ServingHints | null = null
  const endings: { close(): void }[] = []
  return {
    sessionLive: (session) => {
      hints?.close()
      hints = createServingHints({ ...options, session })
    },
    announce: (partition, position, serving) => hints?.announce(partition, position, serving),
    listen: (heard, newsAgeMs) => {
      const ending = broadcast.subscribe(mapSubjects(group).delta, ({ data }) => {
        if (newsAgeMs() < NEWS_MS) return
        const text = decodeFrame(data)
        const delta = text === null ? null : decodeDelta(text)
        for (const entry of delta?.entries ?? []) heard(entry.partition, entry)
      })
      endings.push(ending)
    },
    close: () => {
      hints?.close()
      for (const ending of endings) ending.close()
    },
  }
}
