/**
 * The map's version in HTTP: `ETag`, `If-None-Match`, `If-Match` and the `version`, `asOfMs`, `ageMs`,
 * `stale` that each read carries.
 *
 * `If-Match` is compared with the map of this process when the request arrives; it is no
 * compare-and-set in the store. It protects an operator from deciding on an old picture, not two
 * operators from each other within the same moment (the store's own conditions do that: 409).
 * `serving` and the ages are hints outside the version: they may change while the ETag stays.
 */
import type { Clock } from '../ports/clock.ts'
import type { Freshness, GroupView, MapVersion } from '../ports/group-access.ts'
import { createProblem } from './problem.ts'

const VERSION = /^(\d{1,15})\.(\d{1,15})$/

export type FreshnessFields = {
  readonly version: string
  /** Wall time at which the map was last known to be current, by this process's clock. */
  readonly asOfMs: number
  readonly ageMs: number
  readonly stale: boolean
}

/** `<incarnation>.<revision>`. */
export function versionText(version: MapVersion): string {
  return `${version.incarnation}.${version.revision}`
}

/** Null: not a version. */
export function parseVersion(text: string): MapVersion | null {
  const match = VERSION.exec(text)
  if (match === null) return null
  return { incarnation: Number(match[1]), revision: Number(match[2]) }
}

/** Negative when a is older, 0 when equal, positive when a is newer. */
export function compareVersions(a: MapVersion, b: MapVersion): number {
  return a.incarnation - b.incarnation || a.revision - b.revision
}

export function freshnessFields(freshness: Freshness, clock: Clock): FreshnessFields {
  return {
    version: versionText(freshness.version),
    asOfMs: clock.wallMs() - Math.round(freshness.ageMs),
    ageMs: Math.round(freshness.ageMs),
    stale: freshness.stale,
  }
}

/** True when `If-None-Match` names this ETag (weakly compared, as RFC 9110 wants it) or `*`. */
export function isUnchanged(ifNoneMatch: string | undefined, etag: string): boolean {
  return ifNoneMatch !== undefined && namesTag(ifNoneMatch, etag)
}

/** @throws ProblemError `precondition-failed` when `If-Match` stands and names another version. */
export function demandVersion(ifMatch: string | undefined, view: GroupView): void {
  if (ifMatch === undefined) return
  const version = versionText(view.freshness().version)
  // A weak tag never matches here, but this server gives out strong ones only.
  if (namesTag(ifMatch, `"${version}"`) && !ifMatch.startsWith('W/')) return
  throw createProblem(
    'precondition-failed',
    `the map is at version ${version}, If-Match names ${ifMatch}: read again, decide again, then ` +
      'send the new ETag',
  )
}

function namesTag(header: string, etag: string): boolean {
  if (header === etag || header === '*') return true
  return header.split(',').some((item) => item.trim().replace(/^W\//, '') === etag)
}
