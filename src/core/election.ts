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
 * while its neighbours are being won would make members change their minds and collide. But members whose
 * maps differed then (one joined while others already won) may each wait for the other. So where a first
 * candidate has won nothing for a while, it is computed anew: all is quiet then, and maps agree. That is
 * cheap, and so comes sooner than a second candidate's turn, which is for a first one that is stuck.
 *
 * One mutable table like `GroupState`, for the same reason; there are no timers in it, one wake time
 * serves all. Jitter comes from a hash of partition and attempt, not from a random source.
 */
import type { Assignment } from './assignor.ts'
import { ElectionTurns, jitter, RECONSIDER_MS } from './election-turns.ts'
import { assignGroup, isElectable } from './group-assignment.ts'
import type { GroupState } from './group-state.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { PreferenceOrderFactory } from './preference-order.ts'
import { type Vacancy, VacancyTable } from './vacancy-table.ts'

export const BACK_OFF_FIRST_MS = 100
export const BACK_OFF_MAX_MS = 5000
/** How long before the first of them opens it is decided who campaigns for which. */
const PLAN_AHEAD_MS = 200
/**
 * Campaigns under way at once. Few enough that a member which joins meanwhile still finds its share
 * open, enough to keep the store's pipeline full (six batches of 120).
 */
export const CAMPAIGNS_MAX = 720

export type ElectionRound = {
  readonly campaigns: readonly PartitionId[]
  /** When to look again; null: only after the next change. */
  readonly wakeAtMs: number | null
}

export class ElectionSchedule {
  private readonly state: GroupState
  private readonly me: MemberName
  private readonly orderOf: PreferenceOrderFactory
  private readonly vacancies = new VacancyTable()
  /** Those of them whose first candidate I am, while I don't campaign: what nearly every round is about. */
  private readonly mine = new Set<Vacancy>()
  /** Before this no other member's turn can have been missed; a lower bound, so one look too many is all. */
  private othersDueAtMs = Number.NEGATIVE_INFINITY
  /** Before this no first candidate has been idle for long enough; a lower bound likewise. */
  private idleDueAtMs = Number.NEGATIVE_INFINITY
  private readonly contested = new Set<PartitionId>()
  private readonly turns: ElectionTurns
  private uncomputed = false
  private needsLook = false
  private isTruncated = false

  constructor(state: GroupState, me: MemberName, orderOf: PreferenceOrderFactory) {
    this.state = state
    this.me = me
    this.orderOf = orderOf
    this.turns = new ElectionTurns(state, me, orderOf)
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
      if (vacancy === null) return
      this.vacancies.remove(vacancy)
      if (vacancy.target === this.me) this.mine.delete(vacancy)
      const winner = this.state.liveOwner(partition)
      if (winner !== null) this.turns.won(winner.member, nowMs)
      return
    }
    if (vacancy !== null) return
    this.uncomputed = true
    this.needsLook = true
    this.vacancies.add({
      partition,
      sinceMs: nowMs,
      attempts: 0,
      notBeforeMs: nowMs,
      target: null,
      chosen: false,
      chosenAtMs: nowMs,
    })
  }

  /** Call when cordons or evictions changed: who may win, but no partition's being vacant. */
  receiversChanged(nowMs: number): void {
    this.othersDueAtMs = Number.NEGATIVE_INFINITY
    this.idleDueAtMs = Number.NEGATIVE_INFINITY
    if (!this.turns.membersChanged(nowMs)) return
    this.uncomputed = true
    this.needsLook = true
    for (const vacancy of this.vacancies) vacancy.chosen = false
  }

  /** Call when members or settings changed: any partition may be affected. */
  groupChanged(nowMs: number): void {
    this.receiversChanged(nowMs)
    for (let partition = 0; partition < this.state.partitions; partition += 1) {
      this.partitionChanged(partition, nowMs)
    }
  }

  /** A campaign is under way: not again before its end. */
  began(partition: PartitionId): void {
    this.contested.add(partition)
    const vacancy = this.vacancies.get(partition)
    if (vacancy !== null) this.mine.delete(vacancy)
  }

  /** A campaign ended; the partition may still be vacant. */
  ended(partition: PartitionId, won: boolean, nowMs: number): void {
    this.contested.delete(partition)
    if (this.isTruncated) this.needsLook = true
    const vacancy = this.vacancies.get(partition)
    if (vacancy === null || won) return
    if (vacancy.chosen && vacancy.target === this.me) this.mine.add(vacancy)
    this.needsLook = true
    this.othersDueAtMs = Number.NEGATIVE_INFINITY
    this.idleDueAtMs = Number.NEGATIVE_INFINITY
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
    this.turns.lookedLate(lateMs, nowMs)
  }

  /** I could not acquire it: I don't campaign for it until then, others may. */
  holdOff(partition: PartitionId, untilMs: number): void {
    this.turns.holdOff(partition, untilMs)
  }

  /** Whom I would rather see own the partition than me: the first of its ring order who may. */
  nextCandidate(partition: PartitionId): MemberName | null {
    return this.turns.nextCandidate(partition)
  }

  /** Which partitions I campaign for now. The caller says when I may campaign at all. */
  round(nowMs: number): ElectionRound {
    this.needsLook = false
    this.isTruncated = false
    if (this.vacancies.size === 0) return { campaigns: [], wakeAtMs: null }
    const opensAtMs = this.opensAt(nowMs)
    if (opensAtMs > nowMs) return this.beforeOpening(opensAtMs, nowMs)
    if (nowMs >= this.idleDueAtMs) this.forgetIdle(nowMs)
    this.choose(nowMs)
    const campaigns: PartitionId[] = []
    let wakeAtMs = this.collect(this.mine, campaigns, nowMs)
    if (!this.isTruncated && nowMs >= this.othersDueAtMs) {
      const othersDueAtMs = this.collect(this.vacancies, campaigns, nowMs)
      if (!this.isTruncated) this.othersDueAtMs = othersDueAtMs
    }
    if (!this.isTruncated) wakeAtMs = Math.min(wakeAtMs, this.othersDueAtMs)
    return { campaigns, wakeAtMs: Number.isFinite(wakeAtMs) ? wakeAtMs : null }
  }

  /** The plan stands when the first may campaign; earlier, it would be made anew for each that joins. */
  private beforeOpening(opensAtMs: number, nowMs: number): ElectionRound {
    const planAtMs = opensAtMs - PLAN_AHEAD_MS
    if (planAtMs > nowMs) return { campaigns: [], wakeAtMs: planAtMs }
    this.choose(nowMs)
    // Nobody is late yet: when somebody will be is found out now, while there is nothing else to do.
    this.forgetIdle(nowMs)
    this.othersDueAtMs = this.collect(this.vacancies, [], nowMs)
    return { campaigns: [], wakeAtMs: opensAtMs }
  }

  /** Adds those that are due to the campaigns; when the next one is due. */
  private collect(vacancies: Iterable<Vacancy>, campaigns: PartitionId[], nowMs: number): number {
    const isOthers = vacancies !== this.mine
    let nextMs = Number.POSITIVE_INFINITY
    for (const vacancy of vacancies) {
      const { partition } = vacancy
      if (this.contested.has(partition) || (isOthers && this.mine.has(vacancy))) continue
      const dueAtMs = this.turns.dueAt(vacancy, nowMs)
      if (dueAtMs === null) continue
      if (dueAtMs > nowMs) {
        const againAtMs = this.turns.reconsiderAt(vacancy)
        nextMs = Math.min(nextMs, dueAtMs, againAtMs > nowMs ? againAtMs : dueAtMs)
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
    for (const vacancy of this.vacancies) {
      opensAtMs = Math.min(opensAtMs, this.turns.openAt(vacancy))
      if (opensAtMs <= nowMs) break
    }
    return opensAtMs
  }

  /** Has the first candidates computed anew that have had their chance and are not at work. */
  private forgetIdle(nowMs: number): void {
    this.idleDueAtMs = Number.POSITIVE_INFINITY
    for (const vacancy of this.vacancies) {
      if (!vacancy.chosen || vacancy.target === null) continue
      let dueAtMs = this.turns.reconsiderAt(vacancy)
      // Not while I campaign for it, and nobody tells of that campaign's end here.
      if (this.contested.has(vacancy.partition)) dueAtMs = Math.max(dueAtMs, nowMs + RECONSIDER_MS)
      if (dueAtMs > nowMs) {
        this.idleDueAtMs = Math.min(this.idleDueAtMs, dueAtMs)
        continue
      }
      vacancy.chosen = false
      this.uncomputed = true
    }
  }

  /** Computes the first candidates of vacancies that have none yet; the others keep theirs. */
  private choose(nowMs: number): void {
    if (!this.uncomputed) return
    this.uncomputed = false
    const chosen = new Map<PartitionId, MemberName>()
    for (const { partition, chosen: isChosen, target } of this.vacancies) {
      if (isChosen && target !== null) chosen.set(partition, target)
    }
    const assignment: Assignment = assignGroup(this.state, this.orderOf, { chosen })
    this.othersDueAtMs = Number.NEGATIVE_INFINITY
    this.idleDueAtMs = Number.NEGATIVE_INFINITY
    for (const vacancy of this.vacancies) {
      if (vacancy.chosen) continue
      const { partition } = vacancy
      vacancy.target = assignment.targets[partition] ?? null
      vacancy.chosen = true
      vacancy.chosenAtMs = nowMs
      if (vacancy.target === this.me && !this.contested.has(partition)) this.mine.add(vacancy)
      else this.mine.delete(vacancy)
    }
  }
}
