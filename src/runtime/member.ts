/**
 * One member of one group: its session, its elections, and one ownership machine per partition that
 * concerns it. This is the driver: it feeds the machines what the map, etcd and the host say, performs
 * their actions over the ports, and records each transition once.
 *
 *   keepalive proved → deadline → elections won → (host) acquire, serve, drain → hand-over → map
 *
 * Everything runs on one turn of the event loop after the other; no machine is stepped from two places
 * at once. A broken invariant ends the session at once and fails the member: never catch and continue.
 */
import { ElectionSchedule } from '../core/election.ts'
import { assignGroup, mayReceive } from '../core/group-assignment.ts'
import type { GroupChange, GroupState } from '../core/group-state.ts'
import type { GroupName, MemberName, PartitionId } from '../core/ids.ts'
import { checkOwnershipStep } from '../core/invariants.ts'
import type { GroupKeys } from '../core/keys.ts'
import { stepOwnership } from '../core/ownership.ts'
import type { GiveUp, Grant, OwnershipEvent, Seat } from '../core/ownership-state.ts'
import type { Owner } from '../core/partition-record.ts'
import type { PreferenceOrderFactory } from '../core/preference-order.ts'
import type { Violations } from '../core/record-invariants.ts'
import { createTenureError, type TenureError } from '../core/tenure-error.ts'
import type { Position } from '../core/token.ts'
import { comparePositions } from '../core/token.ts'
import type { KeyValue } from '../core/transaction.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LossCause, SessionEndCause, Telemetry } from '../ports/telemetry.ts'
import { AcquireBackOff } from './acquire-back-off.ts'
import { Campaigns } from './campaigns.ts'
import type { Committer } from './committer.ts'
import { Departure } from './departure.ts'
import { GrantJournal } from './grant-journal.ts'
import { type MemberParts, performAction } from './member-actions.ts'
import { MemberCommits } from './member-commits.ts'
import type { MemberSession } from './member-session.ts'
import type { Mirror, MirrorListener } from './mirror.ts'
import type { PartitionHost } from './partition-host.ts'
import { SeatTable } from './seat-table.ts'
import type { SessionDriver } from './session-driver.ts'
import { StepContext, type StepParts } from './step-context.ts'
import { WakeSchedule } from './wake-schedule.ts'

export type MemberOptions = {
  readonly group: GroupName
  readonly member: MemberName
  readonly keys: GroupKeys
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  readonly mirror: Mirror
  readonly committer: Committer
  readonly orderOf: PreferenceOrderFactory
  readonly host: PartitionHost
  /** Opens the member's sessions; called once. */
  readonly openSession: (listener: {
    live(session: SessionDriver): void
    proved(): void
    ended(session: SessionDriver, cause: SessionEndCause): void
    failed(error: TenureError): void
  }) => MemberSession
  readonly failed: (error: TenureError) => void
}

export class Member implements MirrorListener {
  private readonly options: MemberOptions
  private readonly state: GroupState
  private readonly elections: ElectionSchedule
  private readonly wakes: WakeSchedule
  private readonly commits: MemberCommits
  private readonly campaigns: Campaigns
  private readonly journal: GrantJournal
  private readonly session: MemberSession
  private readonly seats = new SeatTable()
  private readonly backOff = new AcquireBackOff()
  private readonly departure = new Departure()
  private readonly parts: MemberParts
  private readonly stepParts: StepParts
  private identity: Owner | null = null
  private endCause: SessionEndCause = 'session-gone'
  /** The group's incarnation as last looked at. */
  private incarnation: number | null = null
  /** After the store went back: nothing of these incarnations runs here. */
  private haltedThrough = 0
  private closed = false
  private readonly unsubscribe: () => void

  constructor(options: MemberOptions) {
    this.options = options
    this.state = options.mirror.state
    this.elections = new ElectionSchedule(this.state, options.member, options.orderOf)
    this.wakes = new WakeSchedule(options.clock, (partition) =>
      this.step(partition, { type: 'wake' }),
    )
    this.journal = new GrantJournal(options)
    this.commits = new MemberCommits({
      committer: options.committer,
      mirror: options.mirror,
      clock: options.clock,
      teller: this,
      step: (partition, event) => this.step(partition, event),
      isAsked: (partition, id) => this.seats.find(partition)?.asked === id,
      learned: (partition, entry) => {
        this.elections.partitionChanged(partition, options.clock.monotonicMs())
        // The reply to a commit that is over means nothing to the seat, but the map has learned from it
        // and the watch will not tell it again: a grant to me, or a revoke, would never be heard of.
        if (!this.standsBy(partition, entry)) this.see(partition)
        if (this.elections.isStale) this.campaigns.schedule(0)
      },
    })
    this.campaigns = new Campaigns({
      clock: options.clock,
      elections: this.elections,
      mayCampaign: () => this.mayCampaign(),
      campaign: (partition) => this.campaign(partition),
    })
    const { elections, campaigns, commits, journal } = this
    this.parts = {
      ...options,
      ...{ elections, campaigns, commits, journal },
      begin: (partition, grant) => this.begin(partition, grant),
      endSession: () => void this.session.close('drain-overdue'),
      endCause: () => this.endCause,
    }
    this.stepParts = {
      ...{
        state: this.state,
        member: options.member,
        random: options.random,
        clock: options.clock,
      },
      isLeaving: () => this.departure.isUnderWay,
    }
    this.unsubscribe = options.mirror.subscribe(this)
    this.elections.groupChanged(options.clock.monotonicMs())
    this.incarnation = this.state.incarnation
    this.session = options.openSession({
      live: (session) => {
        options.host.sessionLive(session)
        // Others may have granted to it before the claim's answer came: nobody tells of that again.
        this.seeAll()
        this.campaigns.schedule(0)
      },
      proved: () => options.host.proved(),
      ended: (_, cause) => this.sessionEnded(cause),
      failed: (error) => options.failed(error),
    })
  }

  /** The live session, or null. */
  get live(): SessionDriver | null {
    return this.session.live
  }

  /** The seat of each partition that is not absent here. */
  *seated(): Iterable<readonly [PartitionId, Seat]> {
    for (const partition of this.seats.active) yield [partition, this.seats.at(partition)]
  }

  // What the map says.

  changed(change: GroupChange): void {
    if (this.closed) return
    const nowMs = this.options.clock.monotonicMs()
    if (change.members || change.settings) this.elections.groupChanged(nowMs)
    else if (change.receivers) this.elections.receiversChanged(nowMs)
    for (const partition of change.partitions) {
      this.elections.partitionChanged(partition, nowMs)
      this.see(partition)
    }
    if (change.receivers) this.endIfEvicted()
    if (change.settings) this.settingsChanged()
    // All of them also decide whether this member may campaign, for whatever is vacant already.
    const { members, settings, receivers } = change
    const isNews = members || settings || receivers || this.elections.isStale
    if (isNews) this.campaigns.schedule(0)
  }

  /**
   * The store was restored from a backup, or wiped (sign 3): stop all that is old. `RewindWatch` tells
   * which it was, and raises the alarm or makes the group anew.
   */
  rewound(): void {
    this.haltedThrough = Math.max(this.haltedThrough, this.state.incarnation ?? 0)
    for (const partition of [...this.seats.active]) this.loseAll(partition, 'halted')
  }

  /** A broadcast says so; etcd is asked before anything but the gate changes. */
  heard(partition: PartitionId, position: Position): void {
    const seat = this.seats.find(partition)
    if (seat === null || comparePositions(position, seat.highest) <= 0) return
    this.step(partition, { type: 'heard-higher', position })
  }

  // What the host says. `grant` guards against answers of an earlier grant.

  acquired(partition: PartitionId, grant: Grant): void {
    if (!this.seats.holds(partition, grant)) return
    this.backOff.succeeded(partition)
    this.step(partition, { type: 'acquired' })
  }

  /** Returns the back-off in milliseconds. */
  acquireFailed(partition: PartitionId, grant: Grant): number {
    if (!this.seats.holds(partition, grant)) return 0
    const { retryMs, isFirst } = this.backOff.failed(partition)
    this.elections.holdOff(partition, this.options.clock.monotonicMs() + retryMs)
    // The next one may be better off. When it comes back from there, nobody is: then it goes vacant, for the
    // elections know who holds off. Handed on each time, it would go round as fast as etcd can write.
    const to = isFirst ? this.elections.nextCandidate(partition) : null
    this.step(partition, { type: 'acquire-failed', to })
    return retryMs
  }

  drained(partition: PartitionId, grant: Grant): void {
    if (!this.seats.holds(partition, grant)) return
    if (this.departure.isUnderWay && (this.state.config?.restartGraceMs ?? 0) > 0) {
      this.departure.keep(partition)
      this.departure.check(this.seats.active)
      return
    }
    this.step(partition, { type: 'drained' })
  }

  /** A resource refused this grant although etcd calls it the newest (sign 1). */
  fenceAhead(partition: PartitionId, grant: Grant, highest: Position): void {
    if (this.seats.holds(partition, grant)) this.step(partition, { type: 'fence-ahead', highest })
  }

  // Leaving.

  /** Drains and hands over everything; resolves when nothing is held. The session stays open. */
  async leave(): Promise<void> {
    if (!this.departure.isUnderWay) {
      void this.session.announceLeaving()
      const me = new Set([this.options.member])
      const { targets } = assignGroup(this.state, this.options.orderOf, { leaving: me })
      const held = [...this.seats.active]
      this.departure.begin(
        new Map(held.map((partition) => [partition, targets[partition] ?? null])),
      )
      for (const partition of [...this.seats.active]) this.giveUpIfDue(partition)
    }
    this.departure.check(this.seats.active)
    await this.departure.empty
  }

  /** Ends the session: locally at once, then at the store. */
  async close(cause: 'closed' | 'drain-overdue' | 'invariant-broken' = 'closed'): Promise<void> {
    const closing = this.session.close(cause)
    this.closed = true
    this.unsubscribe()
    this.wakes.close()
    this.campaigns.close()
    this.commits.close()
    this.departure.end()
    await closing
  }

  // The machines.

  private step(partition: PartitionId, event: OwnershipEvent): void {
    if (this.closed) return
    const before = this.seats.at(partition)
    const nowMs = this.options.clock.monotonicMs()
    const context = new StepContext(partition, this.me(), this.stepParts)
    const step = stepOwnership(before, event, context, nowMs)
    const broken = checkOwnershipStep(before, event, context, step)
    if (broken.length > 0) {
      this.breakDown(partition, event, broken)
      return
    }
    this.seats.put(partition, step.seat)
    if (step.wakeAtMs !== null) this.wakes.add(partition, step.wakeAtMs)
    for (const action of step.actions) {
      performAction(this.parts, partition, before, step.seat, action)
    }
    // Its turn may have come while the seat was not free, and nothing tells of it again.
    const isFreed = before.now.status !== 'absent' && step.seat.now.status === 'absent'
    if (isFreed && this.elections.vacantSince(partition) !== null) this.campaigns.schedule(0)
    if (this.seats.active.size === 0) this.departure.check(this.seats.active)
  }

  /** A bug: every gate closes with the session, and the worker ends. Nothing of the step is done. */
  private breakDown(partition: PartitionId, event: OwnershipEvent, broken: Violations): void {
    const words = broken.map(({ name, detail }) => `${name}: ${detail}`).join('; ')
    const detail = `partition ${partition}, on ${event.type}: ${words}`
    this.journal.alarm('invariant-broken', detail)
    this.options.failed(createTenureError('invariant-broken', detail, { details: { broken } }))
    void this.close('invariant-broken')
    for (const held of [...this.seats.active]) this.options.host.lose(held, 'invariant-broken')
  }

  private begin(partition: PartitionId, grant: Grant): void {
    const session = this.session.current
    if (session === null) return
    const sinceMs = this.elections.vacantSince(partition)
    const ownerlessMs = sinceMs === null ? null : this.options.clock.monotonicMs() - sinceMs
    this.journal.note(partition, this.seats.at(partition), {
      type: 'granted',
      how: grant.how,
      ownerlessMs,
    })
    this.options.host.begin(partition, grant, session)
    this.giveUpIfDue(partition)
  }

  private see(partition: PartitionId): void {
    if (!this.seats.active.has(partition)) {
      const owner = this.state.owner(partition)
      if (owner === null || owner.session !== this.session.current?.session) return
      if (this.isHalted()) return
    }
    this.step(partition, { type: 'seen', stored: this.state.record(partition) })
  }

  /** The seat has taken in this record, and the map has none that is newer: it has nothing to see. */
  private standsBy(partition: PartitionId, { value, modRevision }: KeyValue): boolean {
    const isNewest = this.state.recordRevision(partition) === modRevision
    return isNewest && this.seats.standsBy(partition, value)
  }

  private seeAll(): void {
    for (let partition = 0; partition < this.state.partitions; partition += 1) this.see(partition)
  }

  private sessionEnded(cause: SessionEndCause): void {
    this.endCause = cause
    for (const partition of [...this.seats.active]) {
      // Drained and released: nobody loses it, its record waits for this member's return.
      if (this.departure.keeps(partition)) this.vacateSeat(partition)
      else this.step(partition, { type: 'session-ended' })
    }
    this.departure.check(this.seats.active)
  }

  // Giving up what should not be held.

  /** A risen incarnation makes a grant to myself due also where nothing is held. */
  private incarnationChanged(): void {
    this.incarnation = this.state.incarnation
    this.seeAll()
  }

  private endIfEvicted(): void {
    if (this.state.evictions.has(this.options.member) && this.live !== null) {
      void this.session.current?.close('evicted')
    }
  }

  private settingsChanged(): void {
    for (const partition of [...this.seats.active]) this.giveUpIfDue(partition)
    if (this.state.incarnation !== this.incarnation) this.incarnationChanged()
  }

  private giveUpIfDue(partition: PartitionId): void {
    const now = this.seats.find(partition)?.now
    if (now?.status !== 'serving' && now?.status !== 'acquiring') return
    const giveUp = this.dueGiveUp(partition, now.grant)
    if (giveUp !== null) this.step(partition, { type: 'give-up', giveUp })
  }

  private dueGiveUp(partition: PartitionId, grant: Grant): GiveUp | null {
    if (this.departure.isUnderWay) {
      const planned = this.departure.goesTo(partition)
      // What others granted meanwhile goes on to the next one at once, and waits for no election.
      const to = planned === undefined ? this.elections.nextCandidate(partition) : planned
      return { to, reason: 'leave' }
    }
    if (this.state.isDisabled(partition)) return { to: null, reason: 'disabled' }
    if (grant.incarnation < (this.state.incarnation ?? 0)) {
      return { to: this.options.member, reason: 'incarnation' }
    }
    return null
  }

  // Elections.

  private campaign(partition: PartitionId): void {
    if (this.seats.active.has(partition)) return
    this.step(partition, { type: 'campaign', stored: this.state.record(partition) })
  }

  private mayCampaign(): boolean {
    const mine = this.state.members.get(this.options.member)
    return (
      !this.closed &&
      !this.departure.isUnderWay &&
      this.live !== null &&
      this.state.config !== null &&
      mine?.session === this.live.session &&
      mayReceive(this.state, mine) &&
      !this.isHalted()
    )
  }

  private isHalted(): boolean {
    return this.haltedThrough > 0 && (this.state.incarnation ?? 0) <= this.haltedThrough
  }

  // Small parts.

  /** My name and live session; the same object as long as it is the same session. */
  private me(): Owner | null {
    const session = this.session?.live?.session ?? null
    if (session === null) return null
    if (this.identity?.session !== session) {
      this.identity = { member: this.options.member, session }
    }
    return this.identity
  }

  private loseAll(partition: PartitionId, cause: LossCause): void {
    const seat = this.vacateSeat(partition)
    this.journal.note(partition, seat, { type: 'lost', cause })
    this.options.host.lose(partition, cause)
  }

  private vacateSeat(partition: PartitionId): Seat {
    const seat = this.seats.vacate(partition)
    if (seat.now.status === 'campaigning') {
      this.elections.ended(partition, false, this.options.clock.monotonicMs())
    }
    return seat
  }
}
