/**
 * When to campaign for which vacant partition. Elections need no rebalancer: every member runs the same
 * assignor on its own map and campaigns for what it gives to that member; where maps differ, the
 * election's transaction decides, and exactly one candidate wins.
 *
 *   vacancy seen ──▶ (settle, for never-owned ones) ──▶ (restart grace) ──▶ candidate 0 now,
 *                                                      candidate 1 after STEP, candidate 2 after 2 STEP …
 *   (a candidate that was seen to win another partition within STEP is at work: later ones wait on)
 *   campaign refused and still vacant ──▶ back-off, doubling, with jitter
 *
 * A vacancy's first candidate is computed once and kept until the membership changes: recomputing it
 * while its neighbours are being won would make members change their minds and collide.
 *
 * One mutable table like `GroupState`, for the same reason; there are no timers in it, one wake time
 * serves all. Jitter comes from a hash of partition and attempt, not from a random source.
 */
import type { Assignment } from './assignor.ts'
import { campaignOrder } from './assignor-candidates.ts'
import { assignableMembers, assignGroup, isElectable } from './group-assignment.ts'
import type { GroupState } from './group-state.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { PreferenceOrder, PreferenceOrderFactory } from './preference-order.ts'

/**
 * How much later the next candidate campaigns, as a share of T, and at least. The first candidate lives,
 * or the membership would have changed, so this is for one that is stuck; and no longer than a share of
 * T, because after T a dead candidate's session is gone and everything is computed anew.
 */
export const CANDIDATE_STEP_SHARE = 1 / 3
export const CANDIDATE_STEP_MIN_MS = 1000
/** A look this late shows that this process was stalled: its map may be as old. */
export const LATE_LOOK_MS = 100
/** Ranks beyond this campaign together: a delay must stay bounded. */
export const CANDIDATE_RANKS_MAX = 8
export const BACK_OFF_FIRST_MS = 100
export const BACK_OFF_MAX_MS = 5000
/**
 * Campaigns under way at once. Few enough that a member which joins meanwhile still finds its share
 * open, enough to keep the store's pipeline full (six batches of 120).
 */
export const CAMPAIGNS_MAX = 720
/** A stream of joins may hold up the first grants this many settle times, no longer. */
const SETTLE_TIMES_MAX = 5

type Vacancy = {
  sinceMs: number
  attempts: number
  notBeforeMs: number
  /** Null until computed, and when nobody has room. */
  target: MemberName | null
  chosen: boolean
}

export type ElectionRound = {
  readonly campaigns: readonly PartitionId[]
  /** When to look again; null: only after the next change. */
  readonly wakeAtMs: number | null
}

export class ElectionSchedule {
  private readonly state: GroupState
  private readonly me: MemberName
  private readonly orderOf: PreferenceOrderFactory
  private readonly vacancies = new Map<PartitionId, Vacancy>()
  /** Those of them whose first candidate I am: what nearly every round is about. */
  private readonly mine = new Set<PartitionId>()
  /** Before this no other member's turn can have been missed; a lower bound, so one look too many is all. */
  private othersDueAtMs = Number.NEGATIVE_INFINITY
  private readonly contested = new Set<PartitionId>()
  private readonly heldOff = new Map<PartitionId, number>()
  private firstJoinMs: number | null = null
  private lastJoinMs = 0
  private names = ''
  private order: PreferenceOrder | null = null
  private uncomputed = false
  private needsLook = false
  private isTruncated = false
  /** Until here this process was stalled; before that it could not see who campaigned. */
  private stalledUntilMs = Number.NEGATIVE_INFINITY
  /** When each member was last seen to win a partition: who is winning is not to be overtaken. */
  private readonly wonAtMs = new Map<MemberName, number>()

  constructor(state: GroupState, me: MemberName, orderOf: PreferenceOrderFactory) {
    this.state = state
    this.me = me
    this.orderOf = orderOf
  }

  /** Number of partitions that nobody who lives owns and somebody may. */
  get vacant(): number {
    return this.vacancies.size
  }

  /** Monotonic time since which the partition is known vacant, or null. */
  vacantSince(partition: PartitionId): number | null {
    return this.vacancies.get(partition)?.sinceMs ?? null
  }

  /** Whether a round may bring something that the last one's wake time does not know of. */
  get isStale(): boolean {
    return this.needsLook
  }

  /** Call for each partition whose record changed. */
  partitionChanged(partition: PartitionId, nowMs: number): void {
    const vacancy = this.vacancies.get(partition)
    if (!isElectable(this.state, partition)) {
      if (vacancy === undefined) return
      this.vacancies.delete(partition)
      this.mine.delete(partition)
      const winner = this.state.liveOwner(partition)
      if (winner !== null) this.wonAtMs.set(winner.member, nowMs)
      return
    }
    if (vacancy !== undefined) return
    this.uncomputed = true
    this.needsLook = true
    this.vacancies.set(partition, {
      sinceMs: nowMs,
      attempts: 0,
      notBeforeMs: nowMs,
      target: null,
      chosen: false,
    })
  }

  /** Call when members, settings or operators' marks changed: any partition may be affected. */
  groupChanged(nowMs: number): void {
    this.othersDueAtMs = Number.NEGATIVE_INFINITY
    const names = assignableMembers(this.state)
      .map(({ member, weight, capacity }) => `${member}:${weight}:${capacity}`)
      .join()
    if (names !== this.names) {
      this.names = names
      this.order = null
      this.firstJoinMs ??= nowMs
      this.lastJoinMs = nowMs
      this.uncomputed = true
      this.needsLook = true
      for (const vacancy of this.vacancies.values()) vacancy.chosen = false
    }
    for (let partition = 0; partition < this.state.partitions; partition += 1) {
      this.partitionChanged(partition, nowMs)
    }
  }

  /** A campaign is under way: not again before its end. */
  began(partition: PartitionId): void {
    this.contested.add(partition)
  }

  /** A campaign ended; the partition may still be vacant. */
  ended(partition: PartitionId, won: boolean, nowMs: number): void {
    this.contested.delete(partition)
    if (this.isTruncated) this.needsLook = true
    const vacancy = this.vacancies.get(partition)
    if (vacancy === undefined || won) return
    this.needsLook = true
    this.othersDueAtMs = Number.NEGATIVE_INFINITY
    vacancy.attempts += 1
    const doubled = BACK_OFF_FIRST_MS * 2 ** Math.min(vacancy.attempts - 1, 10)
    const delayMs = Math.min(BACK_OFF_MAX_MS, doubled)
    vacancy.notBeforeMs = nowMs + delayMs * (0.5 + jitter(partition, vacancy.attempts))
  }

  /**
   * Call when a look came later than planned. News of the others' elections may still wait to be read,
   * so nobody's turn counts as missed before now: a slow machine must not make every member campaign
   * for everything.
   */
  lookedLate(lateMs: number, nowMs: number): void {
    if (lateMs >= LATE_LOOK_MS) this.stalledUntilMs = nowMs
  }

  /** I could not acquire it: I don't campaign for it until then, others may. */
  holdOff(partition: PartitionId, untilMs: number): void {
    this.heldOff.set(partition, untilMs)
  }

  /** Whom I would rather see own the partition than me: the first of its ring order who may. */
  nextCandidate(partition: PartitionId): MemberName | null {
    const preferred = this.ringOrder().order(partition, 2)
    return preferred.find((member) => member !== this.me) ?? null
  }

  /** Which partitions I campaign for now. The caller says when I may campaign at all. */
  round(nowMs: number): ElectionRound {
    this.needsLook = false
    this.isTruncated = false
    if (this.vacancies.size === 0) return { campaigns: [], wakeAtMs: null }
    // While members still join, the plan would be made anew for each of them.
    const opensAtMs = this.opensAt(nowMs)
    if (opensAtMs > nowMs) return { campaigns: [], wakeAtMs: opensAtMs }
    this.choose()
    const campaigns: PartitionId[] = []
    let wakeAtMs = this.collect(this.mine, campaigns, nowMs)
    if (!this.isTruncated && nowMs >= this.othersDueAtMs) {
      const othersDueAtMs = this.collect(this.vacancies.keys(), campaigns, nowMs)
      if (!this.isTruncated) this.othersDueAtMs = othersDueAtMs
    }
    if (!this.isTruncated) wakeAtMs = Math.min(wakeAtMs, this.othersDueAtMs)
    return { campaigns, wakeAtMs: Number.isFinite(wakeAtMs) ? wakeAtMs : null }
  }

  /** Adds those that are due to the campaigns; when the next one is due. */
  private collect(
    partitions: Iterable<PartitionId>,
    campaigns: PartitionId[],
    nowMs: number,
  ): number {
    const isOthers = partitions !== this.mine
    let nextMs = Number.POSITIVE_INFINITY
    for (const partition of partitions) {
      if (this.contested.has(partition) || (isOthers && this.mine.has(partition))) continue
      const vacancy = this.vacancies.get(partition)
      const dueAtMs = vacancy === undefined ? null : this.dueAt(partition, vacancy, nowMs)
      if (dueAtMs === null) continue
      if (dueAtMs > nowMs) {
        nextMs = Math.min(nextMs, dueAtMs)
        continue
      }
      if (this.contested.size + campaigns.length >= CAMPAIGNS_MAX) {
        this.isTruncated = true
        break
      }
      campaigns.push(partition)
    }
    return nextMs
  }

  /** When the first of the vacancies opens to anybody; not later than now where one is open. */
  private opensAt(nowMs: number): number {
    let opensAtMs = Number.POSITIVE_INFINITY
    for (const [partition, vacancy] of this.vacancies) {
      opensAtMs = Math.min(opensAtMs, this.openAt(partition, vacancy))
      if (opensAtMs <= nowMs) break
    }
    return opensAtMs
  }

  /** Computes the first candidates of vacancies that have none yet; the others keep theirs. */
  private choose(): void {
    if (!this.uncomputed) return
    this.uncomputed = false
    const chosen = new Map<PartitionId, MemberName>()
    for (const [partition, vacancy] of this.vacancies) {
      if (vacancy.chosen && vacancy.target !== null) chosen.set(partition, vacancy.target)
    }
    const assignment: Assignment = assignGroup(this.state, this.orderOf, { chosen })
    this.othersDueAtMs = Number.NEGATIVE_INFINITY
    for (const [partition, vacancy] of this.vacancies) {
      if (vacancy.chosen) continue
      vacancy.target = assignment.targets[partition] ?? null
      vacancy.chosen = true
      if (vacancy.target === this.me) this.mine.add(partition)
      else this.mine.delete(partition)
    }
  }

  private dueAt(partition: PartitionId, vacancy: Vacancy, nowMs: number): number | null {
    // Nobody has room (capacity, no eligible member): only a change can help.
    if (vacancy.target === null) return null
    const heldOffMs = this.heldOff.get(partition) ?? 0
    if (heldOffMs <= nowMs) this.heldOff.delete(partition)
    const openAtMs = Math.max(vacancy.notBeforeMs, heldOffMs, this.openAt(partition, vacancy))
    if (vacancy.target === this.me) return openAtMs
    // While the first candidate is winning others, its backlog is no reason to step in.
    const wonAtMs = this.wonAtMs.get(vacancy.target) ?? 0
    const idleAtMs = Math.max(openAtMs, wonAtMs, this.stalledUntilMs)
    const stepMs = this.stepMs()
    const secondAtMs = idleAtMs + stepMs
    // The ring is asked only once the first candidate had its chance: mostly it is gone by then.
    if (secondAtMs > nowMs) return secondAtMs
    const rank = this.rank(partition, vacancy.target)
    return idleAtMs + stepMs * (rank + jitter(partition, vacancy.attempts) / 2)
  }

  private openAt(partition: PartitionId, vacancy: Vacancy): number {
    const { config } = this.state
    if (config === null) return vacancy.sinceMs
    if (this.state.phase(partition) === null) {
      const settleMs = config.settle.firstGrantMs
      const latestMs = (this.firstJoinMs ?? 0) + settleMs * SETTLE_TIMES_MAX
      return Math.min(latestMs, this.lastJoinMs + settleMs)
    }
    const last = this.state.owner(partition)?.member
    if (config.restartGraceMs === 0 || last === undefined || this.state.members.has(last)) {
      return vacancy.sinceMs
    }
    return vacancy.sinceMs + config.restartGraceMs
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
function jitter(partition: PartitionId, attempt: number): number {
  const mixed = Math.imul(partition + 1, 0x9e3779b1) ^ Math.imul(attempt + 1, 0x85ebca6b)
  return ((mixed >>> 8) & 0xffff) / 0x10000
}
