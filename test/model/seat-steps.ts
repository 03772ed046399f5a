/**
 * Steps of the production ownership machine, each taken once and then looked up: a step is a function of
 * the seat, the event and the little of the world that it looks at. Each is checked by the invariants that
 * run in production.
 */
import type { Commit } from '../../src/core/commit.ts'
import type { DrainPolicy } from '../../src/core/group-config.ts'
import type { OperationId, PartitionId } from '../../src/core/ids.ts'
import { checkOwnershipStep } from '../../src/core/invariants.ts'
import { stepOwnership } from '../../src/core/ownership.ts'
import type { Ownership, OwnershipContext, Seat } from '../../src/core/ownership-state.ts'
import { assertUnbroken } from './broken.ts'
import type { Cast } from './cast.ts'
import type { Seats } from './seat-words.ts'
import { Memory } from './table.ts'
import { named, operationName, UNNAMED, type Words } from './words.ts'

/** What a step asks of the rest of the world. */
export type SeatOutcome = {
  readonly seat: number
  /** Requests to send. */
  readonly requests: readonly number[]
  /** The grant whose `acquire` begins; 0: none. */
  readonly begins: number
  /** The host was told that a grant ended without a drain. */
  readonly loses: boolean
  readonly endsSession: boolean
}

/** A step before its operation ids are chosen. */
type RawOutcome = {
  readonly seat: Seat
  readonly commit: Commit | null
  /** The content of a new commit; 0: none, or one sent again. */
  readonly content: number
  readonly confirms: OperationId | null
  readonly begins: number
  readonly loses: boolean
  readonly endsSession: boolean
  readonly named: Map<number, SeatOutcome>
}

/** What a step looks at: my session, the incarnation that I know, the grantee's session by name. */
export type SeatView = {
  readonly me: number
  readonly incarnation: number
  readonly grantees: readonly number[]
}

/** Tells whether an operation id, or the id of a confirming read, occurs in the state at hand. */
export type Occurrences = {
  hasOperation(operation: string): boolean
  hasQuestion(id: OperationId): boolean
}

const QUESTIONS = ['?0', '?1', '?2'] as readonly string[] as readonly OperationId[]

export class SeatSteps {
  private readonly words: Words
  private readonly seats: Seats
  private readonly cast: Cast
  private readonly fenced: boolean
  private readonly policy: DrainPolicy
  private readonly views = new Memory<number>()
  private viewCount = 0
  private readonly raw = new Map<number, RawOutcome>()

  constructor(options: {
    readonly words: Words
    readonly seats: Seats
    readonly cast: Cast
    readonly fenced: boolean
    readonly policy: DrainPolicy
  }) {
    this.words = options.words
    this.seats = options.seats
    this.cast = options.cast
    this.fenced = options.fenced
    this.policy = options.policy
  }

  step(seat: number, event: number, view: SeatView, occurrences: Occurrences): SeatOutcome {
    const viewId = this.viewNumber(view)
    const key = (seat * 2 ** 21 + event) * 2 ** 11 + viewId
    let raw = this.raw.get(key)
    if (raw === undefined) {
      if (viewId >= 2 ** 11 || event >= 2 ** 21) throw new Error('too many views or events')
      raw = this.take(seat, event, view)
      this.raw.set(key, raw)
    }
    return this.name(raw, event, occurrences)
  }

  private viewNumber({ me, incarnation, grantees }: SeatView): number {
    let key = me * 64 + incarnation
    for (const session of grantees) key = key * 1000 + session
    return this.views.of(key, () => this.viewCount++)
  }

  private take(seatId: number, eventId: number, view: SeatView): RawOutcome {
    const { event, partition } = this.words.events.of(eventId)
    const { seat } = this.seats.of(seatId)
    const context = this.context(partition, view)
    const nowMs = event.type === 'wake' ? 1 : 0
    const step = stepOwnership(seat, event, context, nowMs)
    assertUnbroken(checkOwnershipStep(seat, event, context, step), event.type)
    let commit: Commit | null = null
    let confirms: OperationId | null = null
    let begins = 0
    let loses = false
    let endsSession = false
    for (const action of step.actions) {
      if (action.type === 'commit') commit = action.commit
      else if (action.type === 'confirm') confirms = action.id
      else if (action.type === 'begin') begins = this.words.grant(action.grant)
      else if (action.type === 'lose') loses = true
      else if (action.type === 'end-session') endsSession = true
    }
    const isNew = commit !== null && commit.next.operation === UNNAMED
    return {
      seat: { ...step.seat, now: timeless(step.seat.now) },
      commit,
      content: commit !== null && isNew ? this.words.content(commit) : 0,
      confirms,
      begins,
      loses,
      endsSession,
      named: new Map(),
    }
  }

  /** The step with the smallest operation id and question that do not occur yet. */
  private name(raw: RawOutcome, event: number, occurrences: Occurrences): SeatOutcome {
    let operation = 0
    if (raw.content > 0) {
      while (occurrences.hasOperation(operationName(raw.content, operation))) operation += 1
    }
    let question = 0
    if (raw.confirms !== null) {
      while (occurrences.hasQuestion(QUESTIONS[question] as OperationId)) question += 1
    }
    const key = operation * 4 + question
    let outcome = raw.named.get(key)
    if (outcome === undefined) {
      const { partition } = this.words.events.of(event)
      outcome = this.rename(raw, partition, operation, QUESTIONS[question] as OperationId)
      raw.named.set(key, outcome)
    }
    return outcome
  }

  private rename(
    raw: RawOutcome,
    partition: PartitionId,
    operation: number,
    question: OperationId,
  ): SeatOutcome {
    const { words, seats } = this
    let { seat, commit } = raw
    if (commit !== null && raw.content > 0) {
      commit = named(commit, operationName(raw.content, operation))
      if ('commit' in seat.now) seat = { ...seat, now: { ...seat.now, commit } }
    }
    if (raw.confirms !== null) seat = { ...seat, asked: question }
    const requests: number[] = []
    if (commit !== null) {
      const { now } = seat
      const isGivenUp = now.status === 'handing-over' && now.ending !== 'forced'
      const from = isGivenUp ? words.grant(now.grant) : 0
      requests.push(words.request({ type: 'commit', commit: words.commit(commit), from }))
    }
    if (raw.confirms !== null) {
      requests.push(words.request({ type: 'confirm', partition, id: question }))
    }
    const { begins, loses, endsSession } = raw
    return { seat: seats.id(partition, seat), requests, begins, loses, endsSession }
  }

  private context(partition: PartitionId, view: SeatView): OwnershipContext {
    const { cast } = this
    return {
      partition,
      me: view.me === 0 ? null : cast.owner(view.me),
      incarnation: view.incarnation,
      fenced: this.fenced,
      drainDeadlineMs: 1,
      drainPolicy: this.policy,
      acquireDeadlineMs: 1,
      granteeOf: (member) => {
        const session = view.grantees[cast.nameIndex(member)] ?? 0
        return session === 0 ? null : cast.owner(session)
      },
      stamp: { operation: UNNAMED, atMs: 0 },
    }
  }
}

/** Moments are for reports; only whether a deadline is still ahead decides anything. */
function timeless(now: Ownership): Ownership {
  if (now.status === 'handing-over') return { ...now, drainMs: 0, sentAtMs: 0 }
  if (now.status === 'draining') {
    return { ...now, sinceMs: 0, overdueAtMs: now.overdueAtMs === null ? null : 1 }
  }
  return now.status === 'acquiring' ? { ...now, overdueAtMs: 1 } : now
}
