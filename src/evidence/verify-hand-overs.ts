/**
 * S10 over both logs. After a drained hand-over no effect of the old owner may still be under way when
 * one of the new owner begins, nor be accepted after the hand-over was known. After an election or a
 * forced move effects may overlap in time, since the fence keeps the late ones out; that overlap is
 * measured all the same. So it is where the incarnation rose: a member that lost a partition when etcd was
 * restored grants it to itself anew by a hand-over that no drain came before, and the logs cannot tell.
 */
import { type EffectLine, tokenId } from './accept-log.ts'
import { describePosition, type Violation } from './findings.ts'
import { type GrantEvent, grantId, previousToken } from './history-log.ts'

export type HandOversFound = {
  readonly violations: readonly Violation[]
  /** Per grant with effects before and after it: how long they overlapped, mostly 0. */
  readonly overlapMs: readonly number[]
  /** The same over drained hand-overs alone, summed. */
  readonly drainedOverlapMs: number
}

export function effectsByToken(
  effects: readonly EffectLine[],
): ReadonlyMap<string, readonly EffectLine[]> {
  const map = new Map<string, EffectLine[]>()
  for (const effect of effects) {
    const id = tokenId(effect.token)
    const known = map.get(id)
    if (known === undefined) map.set(id, [effect])
    else known.push(effect)
  }
  return map
}

/** @param timed whether the grants' times are on the effects' clock */
export function verifyHandOvers(
  grants: readonly GrantEvent[],
  byToken: ReadonlyMap<string, readonly EffectLine[]>,
  timed: boolean,
): HandOversFound {
  const violations: Violation[] = []
  const overlaps: number[] = []
  let drainedOverlapMs = 0
  for (const grant of grants) {
    const token = previousToken(grant)
    const before = token === null ? [] : (byToken.get(tokenId(token)) ?? [])
    if (token === null || before.length === 0) continue
    const { partition, record } = grant
    const isDrained = record.how === 'hand-over' && record.incarnation === token.incarnation
    const generations = [describePosition(token), describePosition(record)]
    const named = { promise: 'S10', partition, generations } as const
    const after = byToken.get(grantId(grant)) ?? []
    if (after.length > 0) {
      const { overlapMs, beginMs } = overlapOf(before, after)
      overlaps.push(overlapMs)
      if (isDrained && overlapMs > 0) {
        drainedOverlapMs += overlapMs
        const detail = `${ms(overlapMs)} of overlap with the new owner, after a drain`
        violations.push({ ...named, kind: 'drained-overlap', atMs: beginMs, detail })
      }
    }
    const late = timed && isDrained ? lastAccepted(before) : null
    if (late !== null && late.endMs > grant.atMs) {
      const detail = `an effect accepted ${ms(late.endMs - grant.atMs)} after the owner had handed over`
      violations.push({ ...named, kind: 'accepted-after-hand-over', atMs: late.endMs, detail })
    }
  }
  return { violations, overlapMs: overlaps, drainedOverlapMs }
}

function overlapOf(before: readonly EffectLine[], after: readonly EffectLine[]) {
  let endMs = Number.NEGATIVE_INFINITY
  for (const effect of before) endMs = Math.max(endMs, effect.endMs)
  let beginMs = Number.POSITIVE_INFINITY
  for (const effect of after) beginMs = Math.min(beginMs, effect.beginMs)
  return { beginMs, overlapMs: Math.max(0, endMs - beginMs) }
}

function lastAccepted(effects: readonly EffectLine[]): EffectLine | null {
  let last: EffectLine | null = null
  for (const effect of effects) {
    if (effect.outcome === 'refused') continue
    if (last === null || effect.endMs > last.endMs) last = effect
  }
  return last
}

function ms(value: number): string {
  return `${Math.round(value * 10) / 10} ms`
}
