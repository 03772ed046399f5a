/**
 * One configuration at hand: its tables and machines, the state being looked at (`from`) and the state that
 * a move makes of it (`row`). A move is announced with `begin`, changes `row`, and ends with `done`.
 */
import type { MemberName, PartitionId } from '../../src/core/ids.ts'
import type { OwnershipEvent } from '../../src/core/ownership-state.ts'
import type { SessionEnd } from '../../src/core/session.ts'
import { claimTransaction, memberSessionKeys, proofTransaction } from '../../src/core/session.ts'
import type { Backup } from './backups.ts'
import { Cast, sessionNumber, sessionText } from './cast.ts'
import { type Layout, layoutOf, type ProcessFields } from './layout.ts'
import type { Sent } from './machine-moves.ts'
import { Occurrences } from './occurrences.ts'
import { PlannerCommits } from './planner-commits.ts'
import { PlannerSteps } from './planner-steps.ts'
import { Views } from './planner-view.ts'
import { SeatSteps } from './seat-steps.ts'
import { Seats } from './seat-words.ts'
import { SessionSteps, TICKS_OF_TTL } from './session-steps.ts'
import type { BudgetKey, Settings } from './settings.ts'
import { type Holds, KEYS, Store } from './store.ts'
import { Memory, pair, Table } from './table.ts'
import { Words } from './words.ts'

/** `heals`: without faults, orders or luck, so what a partition that heals may count on. */
export type Emit = (row: Int32Array, heals: boolean, label: () => string) => void

/** Which members a process takes for alive: the worst of maps shows the dead, or nobody. */
export type Mood = 'shows-the-dead' | 'shows-nobody'

export class Model {
  readonly settings: Settings
  readonly layout: Layout
  readonly cast: Cast
  readonly words: Words
  readonly seats: Seats
  readonly sessions = new SessionSteps()
  readonly store: Store
  readonly planner: PlannerCommits
  readonly views: Views
  readonly machine: PlannerSteps
  /** What rebalancers have on their way. */
  readonly sent = new Table<Sent>()
  readonly compiledWrites = new Memory<Holds>()
  private readonly proofs = new Memory<Holds>()
  private readonly claims = new Memory<Holds>()
  readonly backups = new Table<Backup>()
  /** The state that moves lead away from. */
  from: Int32Array
  /** The state that the move at hand leads to. */
  row: Int32Array
  /** The move at hand, in words. */
  label: () => string = () => ''
  private readonly steps: SeatSteps
  private readonly occurrences: Occurrences
  private emit: Emit = () => {}

  constructor(settings: Settings) {
    this.settings = settings
    this.layout = layoutOf(settings)
    this.cast = new Cast(settings.processes)
    this.words = new Words()
    this.seats = new Seats(this.words)
    this.views = new Views(settings, this.layout, this.cast, this.words)
    this.store = new Store(this.layout, this.words, this.cast, (orders) =>
      this.views.listOrders(orders),
    )
    this.planner = new PlannerCommits(this.words, this.cast)
    this.machine = new PlannerSteps(this.views, this.words)
    this.from = new Int32Array(this.layout.width)
    this.row = new Int32Array(this.layout.width)
    const { words, seats, cast, layout } = this
    const { fenced, policy } = settings
    this.steps = new SeatSteps({ words, seats, cast, fenced, policy })
    const { backups, views, sent } = this
    this.occurrences = new Occurrences({ words, seats, layout, settings, backups, views, sent })
  }

  /** The first state: everybody's first session is live, nothing was ever granted. */
  startRow(): Int32Array {
    const { layout, settings, cast } = this
    const row = new Int32Array(layout.width)
    row[layout.incarnation] = 1
    for (const [process, fields] of layout.processes.entries()) {
      row[fields.incarnation] = 1
      row.fill(this.seats.fresh, fields.seats, fields.seats + settings.partitions)
      const name = layout.leases + cast.name(process)
      if (row[name] !== 0) continue
      const session = sessionNumber(process, 1)
      row[fields.opened] = 1
      row[fields.session] = this.sessions.opened(session)
      row[name] = session
      row[layout.left + cast.name(process)] = settings.timed ? TICKS_OF_TTL : 0
    }
    for (const [key, count] of Object.entries(settings.budget)) {
      row[layout.budget[key as BudgetKey]] = count
    }
    return row
  }

  /** Looks at this state from now on, and hands each move to `emit`. */
  look(from: Int32Array, emit: Emit): void {
    this.from = from
    this.emit = emit
  }

  begin(label: () => string): void {
    this.label = label
    this.row.set(this.from)
  }

  done(heals: boolean): void {
    this.emit(this.row, heals, this.label)
  }

  /** What is left of the budget in the state being looked at. */
  has(key: BudgetKey): boolean {
    return (this.from[this.layout.budget[key]] as number) > 0
  }

  spend(key: BudgetKey): void {
    const at = this.layout.budget[key]
    this.row[at] = (this.row[at] as number) - 1
    // A fault or an order: what follows is a recovery of its own.
    if (this.settings.commitsMax > 0) {
      this.row.fill(0, this.layout.commits, this.layout.commits + this.settings.partitions)
    }
  }

  process(index: number): ProcessFields {
    return this.layout.processes[index] as ProcessFields
  }

  /** Whether the state being looked at mentions this operation id. */
  mentions(operation: string): boolean {
    this.occurrences.at(this.from, 0, 0)
    return this.occurrences.hasOperation(operation)
  }

  /** Whether the state in the making does. */
  mentionsNow(operation: string): boolean {
    this.occurrences.at(this.row, 0, 0)
    return this.occurrences.hasOperation(operation)
  }

  /** The session in which the process believes now; 0: none, or its deadline has passed. */
  believes(row: Int32Array, process: number): number {
    const session = row[this.process(process).session] as number
    if (session === 0) return 0
    const entry = this.sessions.of(session)
    return entry.live ? entry.session : 0
  }

  /** Lets the machine of one seat take one step in `row`, and performs what it asks for. */
  feed(
    process: number,
    partition: PartitionId,
    event: OwnershipEvent,
    mood: Mood = 'shows-the-dead',
  ): void {
    this.feedEvent(process, partition, this.words.event(partition, event), mood)
  }

  /** The same for an event that is in the table. */
  feedEvent(
    process: number,
    partition: PartitionId,
    event: number,
    mood: Mood = 'shows-the-dead',
  ): void {
    const { row, words } = this
    const fields = this.process(process)
    const at = fields.seats + partition
    const view = this.view(process, mood)
    this.occurrences.at(row, process, partition)
    const outcome = this.steps.step(row[at] as number, event, view, this.occurrences)
    row[at] = outcome.seat
    const work = row[fields.works + partition] as number
    if (outcome.loses && work > 0) row[fields.works + partition] = -work
    if (outcome.begins !== 0 || outcome.loses) row[fields.seals + partition] = 0
    this.dropUnasked(fields, partition, outcome.seat)
    for (const request of outcome.requests) {
      row[fields.requests] = words.with(row[fields.requests] as number, request)
    }
    if (outcome.endsSession) this.endSession(process, 'drain-overdue')
  }

  /** What the store, asked by the production transaction in `row`, finds of the process's session. */
  prove(process: number, session: number): 'alive' | 'gone' | 'evicted' {
    const name = this.cast.name(process)
    const holds = this.proofs.of(pair(name, session), () => {
      const keys = memberSessionKeys(KEYS, this.cast.names[name] as MemberName)
      return this.store.all(proofTransaction(keys, sessionText(session)).compare)
    })
    if (holds(this.row)) return 'alive'
    return this.row[this.layout.marks + name] === 0 ? 'gone' : 'evicted'
  }

  /** Whether the production transaction would put the key of a new session now. */
  mayClaim(process: number): boolean {
    const name = this.cast.name(process)
    const holds = this.claims.of(name, () => {
      const keys = memberSessionKeys(KEYS, this.cast.names[name] as MemberName)
      return this.store.all(claimTransaction(keys, sessionText(1), '').compare)
    })
    return holds(this.from)
  }

  /** Ends the session here: every seat hears of it, and the process ends where it must. */
  endSession(process: number, cause: SessionEnd['cause']): void {
    const fields = this.process(process)
    const session = this.row[fields.session] as number
    if (session === 0) return
    if (cause === 'drain-overdue' || cause === 'closed' || cause === 'evicted') {
      this.sessions.step(session, { type: 'close', cause })
      this.row[fields.exited] = 1
    }
    this.row[fields.session] = 0
    this.row[fields.stalled] = 0
    for (let partition = 0; partition < this.settings.partitions; partition += 1) {
      this.feed(process, partition, { type: 'session-ended' })
    }
  }

  /** Time passes for rebalancers too. */
  ageRebalancers(durationMs: number): void {
    for (const { state } of this.layout.rebalancers) {
      const id = this.row[state] as number
      if (id !== 0) this.row[state] = this.machine.later(id, durationMs)
    }
  }

  private view(process: number, mood: Mood) {
    const me = this.believes(this.row, process)
    const own = this.cast.name(process)
    const grantees = this.cast.names.map((_, name) => {
      if (name === own) return me
      return mood === 'shows-nobody' ? 0 : this.lastSession(name)
    })
    return { me, incarnation: this.row[this.process(process).incarnation] as number, grantees }
  }

  /** The session under the name's key, or the last that stood there. */
  private lastSession(name: number): number {
    const stands = this.row[this.layout.leases + name] as number
    if (stands !== 0) return stands
    let last = 0
    for (const [process, { opened }] of this.layout.processes.entries()) {
      const life = this.row[opened] as number
      if (this.cast.name(process) === name && life > 0) last = sessionNumber(process, life)
    }
    return last
  }

  /** An answer that no longer counts may as well never come: its request is dropped. */
  private dropUnasked(fields: ProcessFields, partition: PartitionId, seat: number): void {
    const bag = this.row[fields.requests] as number
    if (bag === 0) return
    const { asked } = this.seats.of(seat).seat
    for (const item of this.words.items(bag)) {
      const request = this.words.requests.of(item)
      if (request.type !== 'confirm' || request.partition !== partition) continue
      if (request.id !== asked) {
        this.row[fields.requests] = this.words.without(this.row[fields.requests] as number, item)
      }
    }
  }
}
