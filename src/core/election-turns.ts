/**
 * Whose turn it is at a vacant partition, and when: the times behind `ElectionSchedule`.
 *
 *   open ──▶ the first candidate's turn ──▶ it has won nothing for `RECONSIDER_MS`: compute it anew
 *                                      └──▶ … for a STEP: the second one's turn, then the third's …
 *
 * "Nothing" is nothing anywhere: a candidate with a backlog is at work, and no reason to step in.
 */
import { campaignOrder } from './assignor-candidates.ts'
import { assignableMembers } from './group-assignment.ts'
import type { GroupState } from './group-state.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { PreferenceOrder, PreferenceOrderFactory } from './preference-order.ts'
import type { Vacancy } from './vacancy-table.ts'

/**
 * How much later the next candidate campaigns, as a share of T, and at least. The first candidate lives,
 * or the membership would have changed, so this is for one that is stuck; and no longer than a share of
 * T, because after T a dead candidate's session is gone and everything is computed anew.
 */
export const CANDIDATE_STEP_SHARE = 1 / 3
export const CANDIDATE_STEP_MIN_MS = 1000
/** When the first candidate of a vacancy is computed anew, after it has last won any partition. */
export const RECONSIDER_MS = 1000
/** A look this late shows that this process was stalled: its map may be as old. */
export const LATE_LOOK_MS = 100
/** Ranks beyond this campaign together: a delay must stay bounded. */
export const CANDIDATE_RANKS_MAX = 8
/** A stream of joins may hold up the first grants this many settle times, no longer. */
const SETTLE_TIMES_MAX = 5

export class ElectionTurns {
  private readonly state: GroupState
  private readonly me: MemberName
  private readonly orderOf: PreferenceOrderFactory
  private readonly heldOff = new Map<PartitionId, number>()
  /** When each member was last seen to win a partition. */
  private readonly wonAtMs = new Map<MemberName, number>()
  /** Many are won at once: a batch of them is noted once. */
  private lastWinner: MemberName | null = null
  private lastWonAtMs = 0
  private firstJoinMs: number | null = null
  private lastJoinMs = 0
  private names = ''
  private order: PreferenceOrder | null = null
  /** Until here this process was stalled; before that it could not see who campaigned. */
  private stalledUntilMs = Number.NEGATIVE_INFINITY

  constructor(state: GroupState, me: MemberName, orderOf: PreferenceOrderFactory) {
    this.state = state
    this.me = me
    this.orderOf = orderOf
  }

  /** True when those who may campaign are others than before, or of another weight or capacity. */
  membersChanged(nowMs: number): boolean {
    const names = assignableMembers(this.state)
      .map(({ member, weight, capacity }) => `${member}:${weight}:${capacity}`)
      .join()
    if (names === this.names) return false
    this.names = names
    this.order = null
    this.firstJoinMs ??= nowMs
    this.lastJoinMs = nowMs
    return true
  }

  won(member: MemberName, nowMs: number): void {
    if (member === this.lastWinner && nowMs === this.lastWonAtMs) return
    this.lastWinner = member
    this.lastWonAtMs = nowMs
    this.wonAtMs.set(member, nowMs)
  }

  lookedLate(lateMs: number, nowMs: number): void {
    if (lateMs >= LATE_LOOK_MS) this.stalledUntilMs = nowMs
  }

  holdOff(partition: PartitionId, untilMs: number): void {
    this.heldOff.set(partition, untilMs)
  }

  /** Whom I would rather see own the partition than me: the first of its ring order who may. */
  nextCandidate(partition: PartitionId): MemberName | null {
    const preferred = this.ringOrder().order(partition, 2)
    return preferred.find((member) => member !== this.me) ?? null
  }

  /** My turn at this vacancy; null: I have none. */
  dueAt(vacancy: Vacancy, nowMs: number): number | null {
    // Nobody has room (capacity, no eligible member): only a change can help.
    if (vacancy.target === null) return null
    const { partition } = vacancy
    const heldOffMs = this.heldOff.get(partition) ?? 0
    if (heldOffMs <= nowMs) this.heldOff.delete(partition)
    const openAtMs = Math.max(vacancy.notBeforeMs, heldOffMs, this.openAt(vacancy))
    if (vacancy.target === this.me) return openAtMs
    const idleAtMs = this.idleAt(vacancy, openAtMs)
    const stepMs = this.stepMs()
    const secondAtMs = idleAtMs + stepMs
    // The ring is asked only once the first candidate had its chance: mostly it is gone by then.
    if (secondAtMs > nowMs) return secondAtMs
    const rank = this.rank(partition, vacancy.target)
    return idleAtMs + stepMs * (rank + jitter(partition, vacancy.attempts) / 2)
  }

  /** When the first candidate is to be computed anew. */
  reconsiderAt(vacancy: Vacancy): number {
    const idleAtMs = this.idleAt(vacancy, this.openAt(vacancy))
    return Math.max(idleAtMs, vacancy.chosenAtMs) + RECONSIDER_MS
  }

  /** When anybody may campaign: after settling where nobody ever owned it, after a former owner's grace. */
  openAt({ partition, sinceMs }: Vacancy): number {
    const { config } = this.state
    if (config === null) return sinceMs
    if (this.state.phase(partition) === null) {
      const settleMs = config.settle.firstGrantMs
      const latestMs = (this.firstJoinMs ?? 0) + settleMs * SETTLE_TIMES_MAX
      return Math.min(latestMs, this.lastJoinMs + settleMs)
    }
    const last = this.state.owner(partition)?.member
    if (config.restartGraceMs === 0 || last === undefined || this.state.members.has(last)) {
      return sinceMs
    }
    return sinceMs + config.restartGraceMs
  }

  /** Since when the first candidate could have won it, and won nothing. */
  private idleAt({ sinceMs, target }: Vacancy, openAtMs: number): number {
    const wonAtMs = target === null ? 0 : (this.wonAtMs.get(target) ?? 0)
    return Math.max(openAtMs, sinceMs, wonAtMs, this.stalledUntilMs)
  }

  private stepMs(): number {
    const ttlMs = this.state.config?.leaseTtlMs ?? 0
    return Math.max(CANDIDATE_STEP_MIN_MS, ttlMs * CANDIDATE_STEP_SHARE)
  }

  private ringOrder(): PreferenceOrder {
    this.order ??= this.orderOf(assignableMembers(this.state).map(({ member }) => member))
    return this.order
  }

  /** My place among the candidates; the last one when I am not near the front. */
  private rank(partition: PartitionId, target: MemberName): number {
    const question = { partition, target, order: this.ringOrder() }
    const place = campaignOrder(question, CANDIDATE_RANKS_MAX).indexOf(this.me)
    return place < 0 ? CANDIDATE_RANKS_MAX : place
  }
}

/** 0 .. 1, the same for the same partition and attempt, different between neighbours. */
export function jitter(partition: PartitionId, attempt: number): number {
  const mixed = Math.imul(partition + 1, 0x9e3779b1) ^ Math.imul(attempt + 1, 0x85ebca6b)
  return ((mixed >>> 8) & 0xffff) / 0x10000
}
