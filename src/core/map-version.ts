/**
 * The version of an ownership map: (incarnation of the group, etcd revision). The map holds everything
 * that happened up to that revision. A version never goes back at an observer (S8).
 */

export type MapVersion = {
  readonly incarnation: number
  readonly revision: number
}

/** Below every version of a real group. */
export const BEFORE_ANY_VERSION: MapVersion = { incarnation: 0, revision: 0 }

/** Negative when a is older, 0 when equal, positive when a is newer. */
export function compareVersions(a: MapVersion, b: MapVersion): number {
  return a.incarnation - b.incarnation || a.revision - b.revision
}

export function laterOf(a: MapVersion, b: MapVersion): MapVersion {
  return compareVersions(a, b) >= 0 ? a : b
}
