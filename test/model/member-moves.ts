/**
 * What a member does by itself and what its host does: it sees the map, campaigns, acquires, admits work,
 * drains. Its map shows all that it missed as one change: whoever acts between two changes acts as if the
 * later one had not been made yet, and what it then sends is executed later all the same.
 *
 * It campaigns whenever its map has no living owner: the election schedule only says when, and that it does
 * so in the end is what healing counts on.
 */
import type { MemberName } from '../../src/core/ids.ts'
import type { OwnershipEvent } from '../../src/core/ownership-state.ts'
import { recordOwner } from '../../src/core/partition-record.ts'
import { checkAdmission, isAlive, openGrant } from './checks.ts'
import type { Model, Mood } from './model.ts'
import { nameOf } from './request-moves.ts'
import { isAbove } from './words.ts'

export function memberMoves(model: Model, process: number): void {
  incarnationMoves(model, process)
  for (let partition = 0; partition < model.settings.partitions; partition += 1) {
    mapMoves(model, process, partition)
    campaignMoves(model, process, partition)
    acquireMoves(model, process, partition)
    workMoves(model, process, partition)
    drainMoves(model, process, partition)
    newsMoves(model, process, partition)
    leaveMoves(model, process, partition)
  }
}

function mapMoves(model: Model, process: number, partition: number): void {
  const fields = model.process(process)
  const record = model.from[model.layout.records + partition] as number
  if (model.from[fields.maps + partition] === record) return
  model.begin(
    () => `${nameOf(model, process)}: map shows ${phaseOf(model, record)} (p${partition})`,
  )
  const stored = model.words.stored(record)
  model.row[fields.maps + partition] = record
  // Watches keep the sequence of changes: who sees a record has seen the incarnation it was written in.
  const incarnation = stored?.record.incarnation ?? 0
  if (incarnation > (model.row[fields.incarnation] as number)) {
    model.row[fields.incarnation] = incarnation
  }
  model.feedEvent(process, partition, model.words.shows(partition, record))
  model.done(true)
}

function incarnationMoves(model: Model, process: number): void {
  const fields = model.process(process)
  const stands = model.from[model.layout.incarnation] as number
  if (model.from[fields.incarnation] === stands) return
  model.begin(() => `${nameOf(model, process)}: sees incarnation ${stands}`)
  model.row[fields.incarnation] = stands
  const name = model.cast.names[model.cast.name(process)] as MemberName
  for (let partition = 0; partition < model.settings.partitions; partition += 1) {
    const seat = model.seats.of(model.row[fields.seats + partition] as number)
    const isHeld = seat.status === 'serving' || seat.status === 'acquiring'
    if (isHeld && model.words.grants.of(seat.grant).incarnation < stands) {
      const giveUp = { to: name, reason: 'incarnation' } as const
      model.feed(process, partition, { type: 'give-up', giveUp })
    }
    const stored = model.words.stored(model.row[fields.maps + partition] as number)
    model.feed(process, partition, { type: 'seen', stored })
  }
  model.done(true)
}

function campaignMoves(model: Model, process: number, partition: number): void {
  const fields = model.process(process)
  if (model.seats.of(model.from[fields.seats + partition] as number).status !== 'absent') return
  if (model.believes(model.from, process) === 0) return
  const stored = model.words.stored(model.from[fields.maps + partition] as number)
  const owner = recordOwner(stored?.record ?? null)
  const isVacant = owner === null || !isAlive(model, model.from, Number(owner.session))
  if (!isVacant && !model.has('bold')) return
  model.begin(() => `${nameOf(model, process)}: campaigns (p${partition})`)
  if (!isVacant) model.spend('bold')
  const before = model.row[fields.seats + partition]
  model.feed(process, partition, { type: 'campaign', stored })
  if (model.row[fields.seats + partition] !== before) model.done(isVacant)
}

function acquireMoves(model: Model, process: number, partition: number): void {
  const fields = model.process(process)
  const seat = model.seats.of(model.from[fields.seats + partition] as number)
  if (seat.status !== 'acquiring') return
  if ((model.from[fields.seals + partition] as number) >= model.settings.sealsBeforeRead) {
    model.begin(() => `${nameOf(model, process)}: acquired (p${partition})`)
    model.feed(process, partition, { type: 'acquired' })
    model.row[model.layout.readers + partition] = seat.grant
    model.done(true)
  }
  if (!model.has('failures')) return
  for (const to of [null, otherName(model, process)]) {
    model.begin(() => `${nameOf(model, process)}: acquire fails, next ${to} (p${partition})`)
    model.spend('failures')
    model.feed(process, partition, { type: 'acquire-failed', to })
    model.done(false)
  }
}

function workMoves(model: Model, process: number, partition: number): void {
  const at = model.process(process).works + partition
  const work = model.from[at] as number
  if (work !== 0) {
    // Wedged work ends with its process.
    if (model.settings.wedged && model.from[model.process(process).exited] === 0) return
    model.begin(() => `${nameOf(model, process)}: work ends (p${partition})`)
    model.row[at] = 0
    model.done(true)
    return
  }
  const grant = openGrant(model, model.from, process, partition)
  const session = model.from[model.process(process).session] as number
  if (grant === 0 || !model.has('work') || !model.sessions.of(session).admits) return
  model.begin(() => `${nameOf(model, process)}: work begins (p${partition})`)
  model.spend('work')
  checkAdmission(model, process, grant)
  model.row[at] = grant
  model.done(false)
}

function drainMoves(model: Model, process: number, partition: number): void {
  const fields = model.process(process)
  const seat = model.seats.of(model.from[fields.seats + partition] as number)
  if (seat.status !== 'draining') return
  const isBusy = model.from[fields.works + partition] === seat.grant
  if (!isBusy) drainedMoves(model, process, partition)
  const { now } = seat.seat
  const isDue = now.status === 'draining' && now.overdueAtMs !== null
  if (!isDue || (!model.settings.wedged && !model.has('overdue'))) return
  model.begin(() => `${nameOf(model, process)}: drain overruns (p${partition})`)
  if (!model.settings.wedged) model.spend('overdue')
  model.feed(process, partition, { type: 'wake' })
  model.done(model.settings.wedged)
}

function drainedMoves(model: Model, process: number, partition: number): void {
  const at = model.process(process).seats + partition
  const moods: readonly Mood[] = ['shows-the-dead', 'shows-nobody']
  let first = -1
  for (const mood of moods) {
    model.begin(() => `${nameOf(model, process)}: drained, its map ${mood} (p${partition})`)
    model.feed(process, partition, { type: 'drained' }, mood)
    if (model.row[at] === first) continue
    first = model.row[at] as number
    model.done(true)
  }
}

/** A broadcast tells of a position above all that is remembered here. */
function newsMoves(model: Model, process: number, partition: number): void {
  const seat = model.seats.of(model.from[model.process(process).seats + partition] as number)
  const isHeld =
    seat.status === 'serving' || seat.status === 'acquiring' || seat.status === 'draining'
  const stored = model.words.stored(model.from[model.layout.records + partition] as number)
  if (!isHeld || stored === null || seat.seat.asked !== null) return
  if (!isAbove(stored.record, seat.seat.highest)) return
  const { incarnation, generation } = stored.record
  const event: OwnershipEvent = { type: 'heard-higher', position: { incarnation, generation } }
  model.begin(() => `${nameOf(model, process)}: hears of ${incarnation}.${generation}`)
  model.feed(process, partition, event)
  model.done(true)
}

function leaveMoves(model: Model, process: number, partition: number): void {
  const seat = model.seats.of(model.from[model.process(process).seats + partition] as number)
  if (!model.has('leaves') || (seat.status !== 'serving' && seat.status !== 'acquiring')) return
  model.begin(() => `${nameOf(model, process)}: gives up (p${partition})`)
  model.spend('leaves')
  const giveUp = { to: otherName(model, process), reason: 'leave' } as const
  model.feed(process, partition, { type: 'give-up', giveUp })
  model.done(false)
}

function otherName(model: Model, process: number): MemberName | null {
  const own = model.cast.name(process)
  return model.cast.names.find((_, name) => name !== own) ?? null
}

function phaseOf(model: Model, record: number): string {
  const stored = model.words.stored(record)
  if (stored === null) return 'nothing'
  const { phase, incarnation, generation } = stored.record
  return `${phase} ${incarnation}.${generation}`
}
