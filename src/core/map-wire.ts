/**
 * The wire format of the ownership map, version 1. Everything is JSON in UTF-8 and language-neutral.
 *
 * Subjects, `<group>` being a group's name:
 *
 *   tenure.v1.<group>.map.delta     publisher → observers   what changed
 *   tenure.v1.<group>.map.digest    publisher → observers   each second: version, hash, counts
 *   tenure.v1.<group>.map.get       observer → one publisher (queue group `tenure-map`): a snapshot
 *   tenure.v1.<group>.map.serving   member → all            what the member serves; a hint
 *
 * Compression: a body whose first byte is not `{` is zlib data (RFC 1950) of the JSON. A sender may
 * compress any delta, digest or hint, and always compresses a snapshot.
 *
 * Every body has `"v": 1`; a receiver ignores a body of another version and fields that it does not
 * know. `incarnation` and `revision` at the top are the map's version. Partition columns are arrays of
 * equal length; those marked *runs* are written as [value, count, value, count, …]. An owner column
 * counts the `owners` table from 1; 0 means none. Phases: 0 vacant, 1 owned, 2 revoking, 3 halted.
 *
 * `ageMs`: how long ago the publisher's copy of etcd was last known to be current.
 *
 * delta    { v, publisher, ageMs, incarnation, revision, previous, partitions, part, parts,
 *            members: [[name, session, address, zone, revision], …],   joined or changed
 *            gone: [[name, session, revision], …],                     sessions that ended
 *            owners: [[name, session], …],
 *            columns: { partition, owner, generation, revision, incarnation: runs, phase: runs } }
 *          It holds all changes after `previous`, up to `revision`. One in several parts (`part` of
 *          `parts`, from 0) counts once all parts came, in order.
 * digest   { v, publisher, ageMs, incarnation, revision, hash, partitions, owned, serving, members }
 *          `hash` as in map-hash.ts.
 * request  { v }
 * reply    one or more messages: a JSON line { v, ageMs, chunk, chunks, bytes }, a line feed, and a piece
 *          of the snapshot's zlib data. Pieces joined in order of `chunk` (from 0) are `bytes` long.
 * snapshot { v, publisher, incarnation, revision, hash, partitions,
 *            members: [[name, session, address, zone], …],             live ones
 *            others: [[name, session], …],                             gone, still named by a partition
 *            columns: { owner, generation, incarnation: runs, phase: runs, serving: runs } }
 *          `owner` counts `members`, then `others`.
 * serving  { v, member, session, serving: { partition, generation, incarnation: runs },
 *            stopped: the same columns }
 *
 * Merging: see map-merge.ts. Bodies are checked here, once; what is malformed decodes to null.
 */
import type { MemberName, SessionId } from './ids.ts'
import { PARTITIONS_MAX } from './keys.ts'
import type { MapDelta, MapSnapshot } from './map-merge.ts'
import { readRuns, writeRuns } from './map-runs.ts'
import type { MapVersion } from './map-version.ts'
import type { MapCounts, MapEntry } from './ownership-map.ts'
import { MAP_PHASES } from './ownership-map.ts'
import type { Owner } from './partition-record.ts'
import { isObject } from './record-format.ts'

export const MAP_QUEUE = 'tenure-map'

export type MapDigest = {
  readonly publisher: string
  readonly ageMs: number
  readonly version: MapVersion
  readonly hash: string
  readonly counts: MapCounts
}

export type MapSubjects = {
  readonly delta: string
  readonly digest: string
  readonly get: string
  readonly serving: string
}

export function mapSubjects(group: string): MapSubjects {
  const prefix = `tenure.v1.${group}.map.`
  return {
    delta: `${prefix}delta`,
    digest: `${prefix}digest`,
    get: `${prefix}get`,
    serving: `${prefix}serving`,
  }
}

export const SNAPSHOT_REQUEST = '{"v":1}'

export function encodeDelta(delta: MapDelta): string {
  const { owners, column } = ownerColumn(delta.entries)
  return JSON.stringify({
    v: 1,
    publisher: delta.publisher,
    ageMs: delta.ageMs,
    ...delta.version,
    previous: delta.previous,
    partitions: delta.partitions,
    part: delta.part,
    parts: delta.parts,
    members: delta.members.map((m) => [m.member, m.session, m.address, m.zone, m.revision]),
    gone: delta.gone.map((gone) => [gone.member, gone.session, gone.revision]),
    owners,
    columns: {
      partition: delta.entries.map((entry) => entry.partition),
      owner: column,
      generation: delta.entries.map((entry) => entry.generation),
      revision: delta.entries.map((entry) => entry.revision),
      incarnation: writeRuns(delta.entries.map((entry) => entry.incarnation)),
      phase: writeRuns(delta.entries.map((entry) => entry.phase)),
    },
  })
}

export function decodeDelta(text: string): MapDelta | null {
  const body = readBody(text)
  if (body === null || !isObject(body['columns'])) return null
  const { previous, partitions, part, parts } = body
  const columns = body['columns']
  const partition = counts(columns['partition'])
  const members = rows(body['members'], 'ssssn')
  const gone = rows(body['gone'], 'ssn')
  const owners = rows(body['owners'], 'ss')
  if (partition === null || members === null || gone === null || owners === null) return null
  if (!isCount(previous) || !isCount(part) || !isCount(parts) || part >= parts) return null
  if (!isPartitionCount(partitions) || partition.some((id) => id >= partitions)) return null
  const owner = counts(columns['owner'], partition.length)
  const generation = counts(columns['generation'], partition.length)
  const revision = counts(columns['revision'], partition.length)
  const incarnation = readRuns(columns['incarnation'], partition.length)
  const phase = readRuns(columns['phase'], partition.length)
  if (!owner || !generation || !revision || !incarnation || !isPhases(phase)) return null
  const table = owners.map(asOwner)
  const { publisher, ageMs } = source(body)
  return {
    publisher,
    ageMs,
    version: version(body),
    previous,
    partitions,
    part,
    parts,
    members: members.map((row) => ({
      address: row[2] as string,
      zone: row[3] as string,
      revision: row[4] as number,
      ...asOwner(row),
    })),
    gone: gone.map((row) => ({ revision: row[2] as number, ...asOwner(row) })),
    entries: partition.map((id, index) => ({
      partition: id,
      incarnation: incarnation[index] as number,
      generation: generation[index] as number,
      phase: phase[index] as number,
      owner: table[(owner[index] as number) - 1] ?? null,
      revision: revision[index] as number,
    })),
  }
}

export function encodeDigest(digest: MapDigest): string {
  const { publisher, ageMs, version, hash, counts } = digest
  return JSON.stringify({ v: 1, publisher, ageMs, ...version, hash, ...counts })
}

export function decodeDigest(text: string): MapDigest | null {
  const body = readBody(text)
  if (body === null) return null
  const { hash, partitions, owned, serving, members } = body
  if (typeof hash !== 'string' || !isPartitionCount(partitions)) return null
  if (!isCount(owned) || !isCount(serving) || !isCount(members)) return null
  const counts = { partitions, owned, serving, members }
  const { publisher, ageMs } = source(body)
  return { publisher, ageMs, version: version(body), hash, counts }
}

export function encodeSnapshot(snapshot: MapSnapshot): string {
  const { publisher, version, hash, members, owners } = snapshot
  return JSON.stringify({
    v: 1,
    publisher,
    ...version,
    hash,
    partitions: snapshot.owner.length,
    members: members.map((m) => [m.member, m.session, m.address, m.zone]),
    others: owners.slice(members.length).map((owner) => [owner.member, owner.session]),
    columns: {
      owner: snapshot.owner,
      generation: snapshot.generation,
      incarnation: writeRuns(snapshot.incarnation),
      phase: writeRuns(snapshot.phase),
      serving: writeRuns(snapshot.serving),
    },
  })
}

export function decodeSnapshot(text: string): MapSnapshot | null {
  const body = readBody(text)
  if (body === null || !isObject(body['columns'])) return null
  const { publisher, hash, partitions } = body
  const columns = body['columns']
  const members = rows(body['members'], 'ssss')
  const others = rows(body['others'], 'ss')
  if (!isPartitionCount(partitions) || typeof hash !== 'string' || !members || !others) return null
  const owner = counts(columns['owner'], partitions)
  const generation = counts(columns['generation'], partitions)
  const incarnation = readRuns(columns['incarnation'], partitions)
  const phase = readRuns(columns['phase'], partitions)
  const serving = readRuns(columns['serving'], partitions)
  if (!owner || !generation || !incarnation || !isPhases(phase) || !serving) return null
  return {
    publisher: publisher as string,
    version: version(body),
    hash,
    members: members.map((row) => ({
      address: row[2] as string,
      zone: row[3] as string,
      ...asOwner(row),
    })),
    owners: [...members, ...others].map(asOwner),
    owner,
    generation,
    incarnation,
    phase,
    serving,
  }
}

function readBody(text: string): Record<string, unknown> | null {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return null
  }
  if (!isObject(body) || body['v'] !== 1) return null
  const { publisher, ageMs = 0, incarnation, revision } = body
  const sound =
    typeof publisher === 'string' &&
    typeof ageMs === 'number' &&
    ageMs >= 0 &&
    isCount(incarnation) &&
    isCount(revision)
  return sound ? body : null
}

function source(body: Record<string, unknown>): { publisher: string; ageMs: number } {
  return { publisher: body['publisher'] as string, ageMs: (body['ageMs'] ?? 0) as number }
}

function version(body: Record<string, unknown>): MapVersion {
  return { incarnation: body['incarnation'] as number, revision: body['revision'] as number }
}

function asOwner(row: readonly unknown[]): Owner {
  return { member: row[0] as MemberName, session: row[1] as SessionId }
}

function ownerColumn(entries: readonly MapEntry[]): {
  owners: [string, string][]
  column: number[]
} {
  const owners: [string, string][] = []
  const numbers = new Map<SessionId, number>()
  const column = entries.map(({ owner }) => {
    if (owner === null) return 0
    const known = numbers.get(owner.session)
    if (known !== undefined) return known
    numbers.set(owner.session, owners.push([owner.member, owner.session]))
    return owners.length
  })
  return { owners, column }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isPartitionCount(value: unknown): value is number {
  return isCount(value) && value >= 1 && value <= PARTITIONS_MAX
}

function isPhases(phases: readonly number[] | null): phases is readonly number[] {
  return phases?.every((phase) => phase < MAP_PHASES.length) ?? false
}

/** An array of counts, of the given length if one is named. */
function counts(value: unknown, length?: number): number[] | null {
  if (!Array.isArray(value) || (length !== undefined && value.length !== length)) return null
  return value.every(isCount) ? value : null
}

/** Rows whose fields are strings (`s`) and counts (`n`); longer rows come from newer senders. */
function rows(value: unknown, shape: string): unknown[][] | null {
  if (!Array.isArray(value)) return null
  const fits = (row: unknown): row is unknown[] =>
    Array.isArray(row) &&
    [...shape].every((kind, index) =>
      kind === 's' ? typeof row[index] === 'string' : isCount(row[index]),
    )
  return value.every(fits) ? value : null
}
