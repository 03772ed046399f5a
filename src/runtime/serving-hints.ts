/**
 * What one member says over the broadcast about the grants that it serves: a hint for observers.
 *
 * Changes of a few milliseconds go out together, of more while many partitions move (`core/gathering.ts`): work
 * ends at its own time in each partition, and a message for each would cost more than what it says is worth.
 * Since the broadcast may lose anything, the member repeats itself: every 10 s the next 1,000 of what it serves,
 * and everything, in such chunks, after the broadcast reconnected (after a random delay, so that many members
 * do not speak at once).
 */
import { gatherMs } from '../core/gathering.ts'
import type { GroupName, MemberName, PartitionId, SessionId } from '../core/ids.ts'
import { mapSubjects } from '../core/map-wire.ts'
import type { ServedGrant } from '../core/serving-wire.ts'
import { encodeServing } from '../core/serving-wire.ts'
import type { Position } from '../core/token.ts'
import { comparePositions } from '../core/token.ts'
import type { Broadcast } from '../ports/broadcast.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { encodeFrame } from './map-frames.ts'

export type ServingHintsOptions = {
  readonly group: GroupName
  readonly member: MemberName
  readonly session: SessionId
  readonly broadcast: Broadcast
  readonly clock: Clock
  readonly random: Random
  /** Partitions of the group that are being revoked. */
  readonly movesUnderWay: () => number
}

export interface ServingHints {
  /** The member serves the grant, or no longer does. */
  announce(partition: PartitionId, position: Position, serving: boolean): void
  close(): void
}

const REPEAT_INTERVAL_MS = 10_000
const RECONNECT_SPREAD_MS = 500
const CHUNK_INTERVAL_MS = 50
const CHUNK_GRANTS_MAX = 1000
/** A hint of a group at rest is late by so much at most. */
const GATHER_LEAST_MS = 5

export function createServingHints(options: ServingHintsOptions): ServingHints {
  const { group, member, session, broadcast, clock, random, movesUnderWay } = options
  const subject = mapSubjects(group).serving
  const served = new Map<PartitionId, ServedGrant>()
  let changed = new Map<PartitionId, { grant: ServedGrant; serving: boolean }>()
  let gathering: Timer | null = null
  let closed = false
  let timer: Timer
  /** Partitions still to be repeated, before the next rest. */
  let rest: PartitionId[] = []

  const send = (serving: readonly ServedGrant[], stopped: readonly ServedGrant[]) => {
    if (serving.length === 0 && stopped.length === 0) return
    broadcast.publish(subject, encodeFrame(encodeServing({ member, session, serving, stopped })))
  }
  const flush = () => {
    gathering = null
    const all = [...changed.values()]
    changed = new Map()
    for (let from = 0; from < all.length; from += CHUNK_GRANTS_MAX) {
      const chunk = all.slice(from, from + CHUNK_GRANTS_MAX)
      const grants = (wanted: boolean) =>
        chunk.filter(({ serving }) => serving === wanted).map(({ grant }) => grant)
      send(grants(true), grants(false))
    }
  }
  const repeatChunk = () => {
    if (rest.length === 0) rest = [...served.keys()]
    const chunk = rest.splice(0, CHUNK_GRANTS_MAX)
    send(
      chunk.flatMap((partition) => served.get(partition) ?? []),
      [],
    )
  }
  const repeatLater = (delayMs: number, chunksAtOnce: number) => {
    timer = clock.schedule(delayMs, () => {
      repeatChunk()
      const isMore = chunksAtOnce > 1 && rest.length > 0
      repeatLater(isMore ? CHUNK_INTERVAL_MS : REPEAT_INTERVAL_MS, isMore ? chunksAtOnce - 1 : 1)
    })
  }
  const listening = broadcast.onStatus((status) => {
    if (status !== 'connected') return
    timer.cancel()
    rest = []
    repeatLater(random.fraction() * RECONNECT_SPREAD_MS, Number.POSITIVE_INFINITY)
  })
  repeatLater(REPEAT_INTERVAL_MS * (0.5 + random.fraction() / 2), 1)

  return {
    announce(partition, position, serving) {
      if (closed) return
      const { incarnation, generation } = position
      const grant = { partition, incarnation, generation }
      const known = served.get(partition)
      if (serving) served.set(partition, grant)
      else if (known !== undefined && comparePositions(known, grant) === 0) served.delete(partition)
      changed.set(partition, { grant, serving })
      gathering ??= clock.schedule(Math.max(GATHER_LEAST_MS, gatherMs(movesUnderWay())), flush)
    },
    close() {
      if (gathering !== null) {
        gathering.cancel()
        flush()
      }
      closed = true
      timer.cancel()
      listening.close()
    },
  }
}
