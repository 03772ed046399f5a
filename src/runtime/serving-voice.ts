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
}

export interface ServingVoice {
  sessionLive(session: SessionId): void
  announce(partition: PartitionId, position: Position, serving: boolean): void
  /** Each position that the map's deltas name. Hints. */
  listen(heard: (partition: PartitionId, position: Position) => void): void
  close(): void
}

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
    listen: (heard) => {
      const ending = broadcast.subscribe(mapSubjects(group).delta, ({ data }) => {
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
