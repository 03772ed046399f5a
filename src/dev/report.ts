/**
 * What a run of the demo proves, computed from three sources that no worker writes: the producer's list
 * of acknowledged orders, the ledger's log, and etcd's own history of grants; kills and pauses from the
 * harness's log. Pure, so that planted violations can be tested.
 *
 * - lost: an acknowledged order without an applied effect. duplicated: one with two.
 * - staleAccepted: an effect applied under a token that etcd never granted, or below one that the ledger
 *   had accepted before.
 * - overlapMs: time during which effects under two successive tokens of one partition were under way
 *   at once, over hand-overs that the owner committed after its drain (S10).
 * - ownerlessMs: from the moment that etcd has no live owner for a partition to its next grant.
 */
import type { HistoryEvent } from './history.ts'
import type { LedgerLine } from './ledger.ts'
import type { PublishedOrder } from './producer.ts'

export type TurmoilLine =
  | { readonly type: 'kill'; readonly member: string; readonly atMs: number }
  | {
      readonly type: 'pause'
      readonly member: string
      readonly atMs: number
      readonly forMs: number
      /** Longer than the session's TTL. */
      readonly beyondTtl: boolean
    }

export type Evidence = {
  readonly published: readonly PublishedOrder[]
  readonly ledger: readonly LedgerLine[]
  readonly history: readonly HistoryEvent[]
  readonly historyComplete: boolean
  readonly turmoil: readonly TurmoilLine[]
}

export type Distribution = { readonly p50: number; readonly p99: number; readonly max: number }

export type DemoReport = {
  readonly published: number
  readonly applied: number
  readonly lost: number
  readonly duplicated: number
  readonly staleAccepted: number
  readonly staleRefused: number
  readonly moves: number
  readonly movesWithWorkInFlight: number
  readonly kills: number
  readonly pauses: number
  readonly overlapMs: number
  readonly ownerlessMs: Distribution
  /** Sentences for every condition that does not hold; empty: the run passed. */
  readonly failures: readonly string[]
}

type Effect = LedgerLine & { readonly type: 'effect' }
type GrantEvent = HistoryEvent & { readonly type: 'record' }

const ZERO_CONDITIONS = ['lost', 'duplicated', 'staleAccepted', 'overlapMs'] as const
const LEAST_CONDITIONS = {
  moves: 20,
  movesWithWorkInFlight: 10,
  kills: 2,
  pauses: 2,
  staleRefused: 1,
} as const

export function reportOf(evidence: Evidence): DemoReport {
  const { published, ledger, history, turmoil } = evidence
  const effects = ledger.filter((line): line is Effect => line.type === 'effect')
  const timesApplied = countApplied(effects)
  const grants = grantsOf(history)
  const moves = grants.filter((grant) => isMove(grant))
  const byToken = effectsByToken(effects)
  const numbers = {
    published: published.length,
    applied: effects.filter(({ outcome }) => outcome === 'applied').length,
    lost: published.filter(({ order }) => !timesApplied.has(order)).length,
    duplicated: [...timesApplied.values()].filter((times) => times > 1).length,
    staleAccepted: countStaleAccepted(ledger, grants),
    staleRefused: effects.filter(({ outcome }) => outcome === 'refused').length,
    moves: moves.length,
    movesWithWorkInFlight: countBusyMoves(moves, history, byToken),
    kills: turmoil.filter(({ type }) => type === 'kill').length,
    pauses: turmoil.filter((line) => line.type === 'pause' && line.beyondTtl).length,
    overlapMs: round(drainedOverlapMs(grants, byToken)),
    ownerlessMs: distributionOf(ownerlessTimes(history)),
  }
  return { ...numbers, failures: failuresOf(numbers, evidence.historyComplete) }
}

function failuresOf(
  numbers: Omit<DemoReport, 'failures'>,
  historyComplete: boolean,
): readonly string[] {
  const failures: string[] = []
  if (!historyComplete) failures.push('the history of grants has a gap: nothing can be concluded')
  for (const name of ZERO_CONDITIONS) {
    if (numbers[name] !== 0) failures.push(`${name} is ${numbers[name]}, must be 0`)
  }
  for (const [name, least] of Object.entries(LEAST_CONDITIONS)) {
    const value = numbers[name as keyof typeof LEAST_CONDITIONS]
    if (value < least) failures.push(`${name} is ${value}, the run needs at least ${least}`)
  }
  return failures
}

function countApplied(effects: readonly Effect[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>()
  for (const { order, outcome } of effects) {
    if (outcome === 'applied') times.set(order, (times.get(order) ?? 0) + 1)
  }
  return times
}

/** Records that are grants: owned at a generation of their own. */
function grantsOf(history: readonly HistoryEvent[]): readonly GrantEvent[] {
  const seen = new Set<string>()
  return history.filter((event): event is GrantEvent => {
    if (event.type !== 'record' || event.record.phase !== 'owned') return false
    const { incarnation, generation } = event.record
    const id = `${event.partition} ${incarnation} ${generation}`
    if (seen.has(id)) return false
    seen.add(id)
    return true
  })
}

function isMove({ record }: GrantEvent): boolean {
  if (record.phase !== 'owned' || record.previous === null) return false
  return record.how !== 'election' && record.previous.member !== record.owner.member
}

function tokenId(
  partition: number,
  token: { incarnation: number; generation: number; session: string },
): string {
  return `${partition} ${token.incarnation} ${token.generation} ${token.session}`
}

function effectsByToken(effects: readonly Effect[]): ReadonlyMap<string, readonly Effect[]> {
  const map = new Map<string, Effect[]>()
  for (const effect of effects) {
    const id = tokenId(effect.token.partition, effect.token)
    const known = map.get(id)
    if (known === undefined) map.set(id, [effect])
    else known.push(effect)
  }
  return map
}

function countStaleAccepted(ledger: readonly LedgerLine[], grants: readonly GrantEvent[]): number {
  const granted = new Set<string>()
  for (const { partition, record } of grants) {
    if (record.phase !== 'owned') continue
    granted.add(tokenId(partition, { ...record, session: record.owner.session }))
  }
  const highest = new Map<number, { incarnation: number; generation: number }>()
  let stale = 0
  for (const line of ledger) {
    if (line.type === 'effect' && line.outcome !== 'applied') continue
    const { token } = line
    const before = highest.get(token.partition)
    const isLower =
      before !== undefined &&
      (token.incarnation - before.incarnation || token.generation - before.generation) < 0
    if (isLower || !granted.has(tokenId(token.partition, token))) stale += 1
    if (before === undefined || !isLower) highest.set(token.partition, token)
  }
  return stale
}

/** Moves of which the old owner had an effect under way when it was revoked. */
function countBusyMoves(
  moves: readonly GrantEvent[],
  history: readonly HistoryEvent[],
  byToken: ReadonlyMap<string, readonly Effect[]>,
): number {
  const revokedAt = new Map<string, number>()
  for (const event of history) {
    if (event.type !== 'record' || event.record.phase !== 'revoking') continue
    const { incarnation, generation, owner } = event.record
    const id = tokenId(event.partition, { incarnation, generation, session: owner.session })
    if (!revokedAt.has(id)) revokedAt.set(id, event.atMs)
  }
  return moves.filter(({ partition, record }) => {
    if (record.previous === null) return false
    const id = tokenId(partition, record.previous)
    const atMs = revokedAt.get(id)
    if (atMs === undefined) return false
    return (byToken.get(id) ?? []).some(({ beginMs, endMs }) => beginMs <= atMs && atMs <= endMs)
  }).length
}

function drainedOverlapMs(
  grants: readonly GrantEvent[],
  byToken: ReadonlyMap<string, readonly Effect[]>,
): number {
  let overlapMs = 0
  for (const { partition, record } of grants) {
    if (record.phase !== 'owned' || record.how !== 'hand-over' || record.previous === null) continue
    const before = byToken.get(tokenId(partition, record.previous)) ?? []
    const after =
      byToken.get(tokenId(partition, { ...record, session: record.owner.session })) ?? []
    const lastEndMs = Math.max(...before.map(({ endMs }) => endMs))
    const firstBeginMs = Math.min(...after.map(({ beginMs }) => beginMs))
    if (lastEndMs > firstBeginMs) overlapMs += lastEndMs - firstBeginMs
  }
  return overlapMs
}

function ownerlessTimes(history: readonly HistoryEvent[]): readonly number[] {
  const sessions = new Map<string, string>()
  const owners = new Map<number, { member: string; session: string }>()
  const sinceMs = new Map<number, number>()
  const times: number[] = []
  for (const event of history) {
    if (event.type === 'session-began') sessions.set(event.member, event.session)
    else if (event.type === 'session-gone') {
      const gone = sessions.get(event.member)
      sessions.delete(event.member)
      for (const [partition, owner] of owners) {
        if (owner.session === gone) sinceMs.set(partition, event.atMs)
      }
    } else if (event.record.phase === 'vacant') {
      owners.delete(event.partition)
      sinceMs.set(event.partition, event.atMs)
    } else {
      const { partition, record } = event
      const began = sinceMs.get(partition)
      const { owner } = record
      if (sessions.get(owner.member) !== owner.session) continue
      owners.set(partition, owner)
      if (began === undefined) continue
      sinceMs.delete(partition)
      times.push(event.atMs - began)
    }
  }
  return times
}

export function distributionOf(values: readonly number[]): Distribution {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0)
  return { p50: at(0.5), p99: at(0.99), max: round(sorted[sorted.length - 1] ?? 0) }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
