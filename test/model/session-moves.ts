/**
 * Sessions: they run out here, in the store, or both; processes stop believing, open new ones, end theirs,
 * are killed.
 *
 * Without time (`timed` off) a deadline may pass at any moment: that stands for every pause, stall and cut
 * line, however long. The store drops a lease once its member has stopped believing in it (`honest`), and
 * else whenever it likes. A lease that is closed and one that runs out look alike.
 */
import { sessionNumber } from './cast.ts'
import { standsFor } from './checks.ts'
import type { Model } from './model.ts'
import { nameOf } from './request-moves.ts'
import { TICKS_OF_TTL } from './session-steps.ts'
import type { Request } from './words.ts'

export function sessionMoves(model: Model, process: number): void {
  const fields = model.process(process)
  const session = model.from[fields.session] as number
  if (session !== 0) {
    endMoves(model, process, session)
    if (model.has('closes')) {
      model.begin(() => `${nameOf(model, process)}: ends its session`)
      model.spend('closes')
      model.endSession(process, 'closed')
      model.done(false)
    }
  } else openMoves(model, process)
  if (!model.has('crashes') || model.from[fields.opened] === 0) return
  model.begin(() => `${nameOf(model, process)}: is killed and starts again`)
  model.spend('crashes')
  crash(model, process)
  model.done(false)
}

/** What the store does with the key of one name. */
export function leaseMoves(model: Model, name: number): void {
  const stands = model.from[model.layout.leases + name] as number
  if (stands === 0) return
  const isBelieved = model.settings.processes.some(
    (_, process) => model.believes(model.from, process) === stands,
  )
  const isOver = model.settings.timed
    ? model.from[model.layout.left + name] === 0
    : !isBelieved || isEnded(model, stands)
  const isClosed = isEnded(model, stands)
  if (isOver || isClosed) {
    model.begin(() => `store: the session of ${model.cast.names[name]} ends`)
    dropLease(model, name)
    model.done(true)
  } else if (!model.settings.honest && model.has('drops')) {
    model.begin(() => `store: drops the live session of ${model.cast.names[name]}`)
    model.spend('drops')
    dropLease(model, name)
    model.done(false)
  }
}

export function dropLease(model: Model, name: number): void {
  model.row[model.layout.leases + name] = 0
  model.row[model.layout.left + name] = 0
  model.row[model.layout.marks + name] = 0
}

/** No process has this session any more: its lease is being closed, or runs out. */
function isEnded(model: Model, session: number): boolean {
  return model.layout.processes.every((fields) => {
    const own = model.from[fields.session] as number
    return own === 0 || model.sessions.of(own).session !== session
  })
}

function endMoves(model: Model, process: number, id: number): void {
  const fields = model.process(process)
  const { session, live } = model.sessions.of(id)
  if (live && !model.settings.timed && model.has('expiries')) {
    model.begin(() => `${nameOf(model, process)}: its deadline passes`)
    model.spend('expiries')
    model.row[fields.session] = model.sessions.expired(id)
    model.done(false)
  }
  if (!live) {
    const { end } = model.sessions.step(id, { type: 'wake' })
    model.begin(() => `${nameOf(model, process)}: sees that its deadline has passed`)
    if (end !== null) model.endSession(process, end)
    model.done(true)
  }
  if (!live) return
  if (standsFor(model, model.from, process) === session) {
    if (model.from[model.layout.marks + model.cast.name(process)] === 0) return
    model.begin(() => `${nameOf(model, process)}: sees its mark`)
    model.endSession(process, 'evicted')
    model.done(true)
    return
  }
  model.begin(() => `${nameOf(model, process)}: its proof finds the session gone`)
  const found = model.prove(process, session)
  if (found === 'alive') return
  const { sentAtMs } = model.sessions.of(id).state
  const evicted = found === 'evicted'
  const { end } = model.sessions.step(id, { type: 'disproved', sentAtMs, evicted })
  if (end !== null) model.endSession(process, end)
  model.done(true)
}

function openMoves(model: Model, process: number): void {
  const fields = model.process(process)
  const isFirst = model.from[fields.opened] === 0
  if (model.from[fields.exited] !== 0 || !model.mayClaim(process)) return
  if (!isFirst && !model.has('sessions')) return
  model.begin(() => `${nameOf(model, process)}: opens a session`)
  if (!isFirst) model.spend('sessions')
  const life = (model.row[fields.opened] as number) + 1
  const session = sessionNumber(process, life)
  model.row[fields.opened] = life
  model.row[fields.session] = model.sessions.opened(session)
  const name = model.cast.name(process)
  model.row[model.layout.leases + name] = session
  model.row[model.layout.left + name] = model.settings.timed ? TICKS_OF_TTL : 0
  model.done(true)
}

/** Nothing is remembered; what it had sent may still land. */
function crash(model: Model, process: number): void {
  const { row, words } = model
  const fields = model.process(process)
  const sent: number[] = []
  for (const item of words.items(row[fields.requests] as number)) {
    const request = words.requests.of(item)
    if (request.type === 'confirm') continue
    const { commit, from } = request
    sent.push(words.request({ type: 'limbo', commit, from } satisfies Request))
  }
  row[fields.requests] = words.bag(sent)
  row[fields.replies] = 0
  row[fields.session] = 0
  row[fields.stalled] = 0
  row[fields.asleep] = 0
  row[fields.exited] = 0
  for (let partition = 0; partition < model.settings.partitions; partition += 1) {
    row[fields.seats + partition] = model.seats.fresh
    row[fields.works + partition] = 0
    row[fields.seals + partition] = 0
    row[fields.maps + partition] = row[model.layout.records + partition] as number
  }
  row[fields.incarnation] = row[model.layout.incarnation] as number
}
