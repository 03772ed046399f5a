/** Makes ownership maps and their changes for tests. */
import type { MemberName, SessionId } from '../../src/core/ids.ts'
import { memberName, sessionId } from '../../src/core/ids.ts'
import type { MapMember } from '../../src/core/map-members.ts'
import type { MapDelta } from '../../src/core/map-merge.ts'
import { mergeDelta } from '../../src/core/map-merge.ts'
import type { MapEntry } from '../../src/core/ownership-map.ts'
import { OwnershipMap } from '../../src/core/ownership-map.ts'

export const INCARNATION = 1_764_440_000

export function session(number: number): SessionId {
  return sessionId((number + 1).toString(16).padStart(16, '0'))
}

export function member(number: number, life = 0): { member: MemberName; session: SessionId } {
  return { member: memberName(`orders-${number}`), session: session(number * 1000 + life) }
}

export function mapMember(number: number, revision: number, life = 0): MapMember {
  return { ...member(number, life), address: `10.0.0.${number}:8080`, zone: 'a', revision }
}

export function entry(
  partition: number,
  generation: number,
  owner: number | null,
  revision: number,
): MapEntry {
  return {
    partition,
    incarnation: INCARNATION,
    generation,
    phase: owner === null ? 0 : 1,
    owner: owner === null ? null : member(owner),
    revision,
  }
}

export function delta(
  previous: number,
  revision: number,
  change: Partial<Pick<MapDelta, 'entries' | 'members' | 'gone' | 'part' | 'parts'>> = {},
): MapDelta {
  return {
    publisher: 'p1',
    ageMs: 0,
    version: { incarnation: INCARNATION, revision },
    previous,
    partitions: 16,
    part: 0,
    parts: 1,
    members: [],
    gone: [],
    entries: [],
    ...change,
  }
}

/** What a publisher's history of changes holds after each of its deltas. */
export function replay(deltas: readonly MapDelta[], partitions = 16): OwnershipMap {
  const map = new OwnershipMap(INCARNATION, partitions)
  for (const one of deltas) {
    mergeDelta(map, one)
    map.completeTo = one.version.revision
  }
  return map
}

/** Everything that an observer can see of a map, entry by entry. */
export function contentOf(map: OwnershipMap): unknown {
  return {
    hash: map.hash(),
    partitions: Array.from({ length: map.partitions }, (_, partition) => map.view(partition)),
    members: [...map.members.allLive()]
      .map(({ member, session, address, zone }) => ({ member, session, address, zone }))
      .sort((a, b) => (a.member < b.member ? -1 : 1)),
  }
}
