/** The `serving` message: which grants a member says it serves (format: map-wire.ts). A hint. */
import type { MemberName, PartitionId, SessionId } from './ids.ts'
import { readRuns, writeRuns } from './map-runs.ts'
import { isObject } from './record-format.ts'
import type { Position } from './token.ts'

export type ServedGrant = Position & { readonly partition: PartitionId }

export type ServingMessage = {
  readonly member: MemberName
  readonly session: SessionId
  readonly serving: readonly ServedGrant[]
  readonly stopped: readonly ServedGrant[]
}

export function encodeServing(message: ServingMessage): string {
  const { member, session } = message
  const serving = columns(message.serving)
  return JSON.stringify({ v: 1, member, session, serving, stopped: columns(message.stopped) })
}

/** Null when malformed or of another version. */
export function decodeServing(text: string): ServingMessage | null {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return null
  }
  if (!isObject(body) || body['v'] !== 1) return null
  const { member, session } = body
  const serving = grants(body['serving'])
  const stopped = grants(body['stopped'])
  if (typeof member !== 'string' || typeof session !== 'string') return null
  if (serving === null || stopped === null) return null
  return { member: member as MemberName, session: session as SessionId, serving, stopped }
}

function columns(served: readonly ServedGrant[]): object {
  return {
    partition: served.map((grant) => grant.partition),
    generation: served.map((grant) => grant.generation),
    incarnation: writeRuns(served.map((grant) => grant.incarnation)),
  }
}

function grants(value: unknown): ServedGrant[] | null {
  if (!isObject(value) || !Array.isArray(value['partition'])) return null
  const { partition, generation } = value
  const incarnation = readRuns(value['incarnation'], partition.length)
  if (!Array.isArray(generation) || generation.length !== partition.length) return null
  if (incarnation === null || ![...partition, ...generation].every(isCount)) return null
  return partition.map((id: number, index: number) => ({
    partition: id,
    generation: generation[index] as number,
    incarnation: incarnation[index] as number,
  }))
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
