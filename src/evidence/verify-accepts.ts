/**
 * S3 over the accept log: per resource and partition, accepted tokens never decrease, one position has
 * one session, and each token was granted by etcd. A line that breaks several of these is named once, by
 * the first of them.
 */
import type { Position } from '../core/token.ts'
import { comparePositions } from '../core/token.ts'
import { type AcceptLine, isAccepted, tokenId } from './accept-log.ts'
import { describePosition, type Gap, type Violation, type ViolationKind } from './findings.ts'

export type AcceptsFound = {
  readonly violations: readonly Violation[]
  readonly gaps: readonly Gap[]
}

/**
 * @param granted tokens by {@link tokenId}
 * @param hasGap whether the partition's history may lack a grant: then a token unknown to it proves
 *   nothing
 */
export function verifyAccepts(
  log: readonly AcceptLine[],
  granted: ReadonlySet<string>,
  hasGap: (partition: number) => boolean,
): AcceptsFound {
  const violations: Violation[] = []
  const unknown = new Map<number, Gap>()
  const highest = new Map<string, Position & { readonly session: string }>()
  for (const line of log) {
    if (!isAccepted(line)) continue
    const { token } = line
    const { partition } = token
    const name = `${line.resource ?? ''} ${partition}`
    const before = highest.get(name)
    const order = before === undefined ? 1 : comparePositions(token, before)
    if (order > 0) highest.set(name, token)
    const kind = kindOf(order, before?.session, token.session, granted.has(tokenId(token)))
    if (kind === null) continue
    if (kind === 'ungranted-token' && hasGap(partition)) {
      const detail = `accepted ${describePosition(token)}, of which the history has no grant`
      if (!unknown.has(partition)) unknown.set(partition, { partition, detail })
      continue
    }
    violations.push({
      ...{ promise: 'S3', kind, partition },
      generations: [
        ...(before === undefined ? [] : [describePosition(before)]),
        describePosition(token),
      ],
      atMs: line.type === 'sealed' ? line.atMs : line.endMs,
      detail: `${line.type === 'sealed' ? 'a seal' : 'an effect'} of session ${token.session}`,
    })
  }
  return { violations, gaps: [...unknown.values()] }
}

function kindOf(
  order: number,
  highestSession: string | undefined,
  session: string,
  isGranted: boolean,
): ViolationKind | null {
  if (order < 0) return 'accepted-decreases'
  if (order === 0 && session !== highestSession) return 'equal-position-other-session'
  return isGranted ? null : 'ungranted-token'
}
