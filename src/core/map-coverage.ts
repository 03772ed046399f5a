/**
 * What a follower's deltas cover: which parts of a large delta came, and which stretch of changes is
 * known behind a gap (map-follower.ts).
 */
import type { Chain, DeltaEvent, FollowerState } from './map-follower-state.ts'
import type { MapVersion } from './map-version.ts'

/** Counts the parts of a large delta; `broken`: its last part came, one before did not. */
export function countPart(
  state: FollowerState,
  event: DeltaEvent,
): { readonly state: FollowerState; readonly parts: 'more' | 'whole' | 'broken' } {
  const { publisher, part, parts, version } = event
  const { partial } = state
  if (parts === 1) {
    return { state: partial === null ? state : { ...state, partial: null }, parts: 'whole' }
  }
  const continues =
    partial !== null &&
    partial.publisher === publisher &&
    partial.revision === version.revision &&
    partial.incarnation === version.incarnation &&
    partial.next === part
  const isWhole = part === 0 || continues
  if (part + 1 === parts) {
    return { state: { ...state, partial: null }, parts: isWhole ? 'whole' : 'broken' }
  }
  const next = isWhole ? { ...version, publisher, next: part + 1 } : null
  return { state: { ...state, partial: next }, parts: 'more' }
}

export function extendChain(chain: Chain | null, version: MapVersion, previous: number): Chain {
  const { incarnation, revision } = version
  const joins =
    chain !== null &&
    chain.incarnation === incarnation &&
    previous <= chain.to &&
    revision >= chain.from
  if (!joins) return { incarnation, from: previous, to: revision }
  const from = Math.min(chain.from, previous)
  return { incarnation, from, to: Math.max(chain.to, revision) }
}

/** Moves the version over the chain once nothing is missing before it. */
export function joinChain(state: FollowerState): FollowerState {
  const { chain, version } = state
  if (chain === null || chain.incarnation > version.incarnation) return state
  if (chain.incarnation < version.incarnation) return { ...state, chain: null }
  if (chain.from > version.revision) return state
  const revision = Math.max(version.revision, chain.to)
  return { ...state, version: { ...version, revision }, chain: null }
}
