/**
 * Time, where a configuration has it: a third of T passes for everybody alike. A healthy session is renewed
 * and proved in that same moment, so that an undisturbed world looks as before. A stopped process lets time
 * pass over it; of a stalled one the rounds fail, or the store hears of the renewal and the proof and the
 * reply hangs, which may arrive as late as its calls' time limits let it.
 *
 * Reduction: nothing in between these moments is distinguished. Deadlines lie between two of them, and a
 * lease runs out at one.
 */
import { standsFor } from './checks.ts'
import type { Model } from './model.ts'
import { nameOf } from './request-moves.ts'
import { TICK_MS, TICKS_OF_TTL } from './session-steps.ts'

/** How long after its renewal was sent a proof's reply may still come: two calls of a third of T each. */
const REPLY_MAX_MS = 2 * TICK_MS

export function timeMoves(model: Model): void {
  if (!model.settings.timed) return
  tick(model, -1, 'fails')
  for (const process of model.settings.processes.keys()) {
    if (model.has('stalls') && isHealthy(model, process)) {
      tick(model, process, 'fails')
      tick(model, process, 'hangs')
    }
    pauseMoves(model, process)
    stallMoves(model, process)
  }
}

function isHealthy(model: Model, process: number): boolean {
  const { session, asleep, stalled } = model.process(process)
  return model.from[session] !== 0 && model.from[asleep] === 0 && model.from[stalled] === 0
}

/** @param disturbed the process whose round this time fails or hangs; -1: none */
function tick(model: Model, disturbed: number, how: 'fails' | 'hangs'): void {
  const { layout, row, cast, settings } = model
  model.begin(() => {
    const words = disturbed < 0 ? '' : `, the round of ${nameOf(model, disturbed)} ${how}`
    return `a third of T passes${words}`
  })
  for (let name = 0; name < cast.names.length; name += 1) {
    row[layout.left + name] = Math.max(0, (row[layout.left + name] as number) - 1)
  }
  for (const { session } of layout.processes) {
    const id = row[session] as number
    if (id !== 0) row[session] = model.sessions.later(id, TICK_MS)
  }
  model.ageRebalancers(TICK_MS)
  if (disturbed >= 0) {
    model.spend('stalls')
    row[model.process(disturbed).stalled] = 1
  }
  for (const process of settings.processes.keys()) {
    const hangs = process === disturbed && how === 'hangs'
    if (row[model.process(process).asleep] === 0) round(model, process, hangs)
  }
  model.done(disturbed < 0)
}

function round(model: Model, process: number, hangs: boolean): void {
  const { row, layout } = model
  const fields = model.process(process)
  const id = row[fields.session] as number
  if (id === 0 || !model.sessions.of(id).live) return
  const sinceMs = model.sessions.hangsSince(id)
  if (sinceMs !== null) {
    if (sinceMs >= -REPLY_MAX_MS) return
    row[fields.session] = model.sessions.step(id, {
      type: 'round-failed',
      sentAtMs: sinceMs,
    }).session
    return
  }
  if (!model.sessions.isDue(id)) return
  const name = model.cast.name(process)
  if (row[fields.stalled] !== 0 && !hangs) {
    row[fields.session] = model.sessions.round(id, 'fails').session
    return
  }
  const { session } = model.sessions.of(id)
  // A keepalive needs only the lease; the mark is for the proof to find.
  if (standsFor(model, row, process) === session) row[layout.left + name] = TICKS_OF_TTL
  const found = model.prove(process, session)
  if (found === 'alive') {
    row[fields.session] = model.sessions.round(id, hangs ? 'hangs' : 'alive').session
    return
  }
  if (hangs) {
    row[fields.session] = model.sessions.round(id, 'fails').session
    return
  }
  const { end } = model.sessions.round(id, found)
  if (end !== null) model.endSession(process, end)
}

function pauseMoves(model: Model, process: number): void {
  const { asleep, session } = model.process(process)
  if (model.from[asleep] !== 0) {
    model.begin(() => `${nameOf(model, process)}: runs again`)
    model.row[asleep] = 0
    model.done(true)
  } else if (model.has('pauses') && model.from[session] !== 0) {
    model.begin(() => `${nameOf(model, process)}: is stopped`)
    model.spend('pauses')
    model.row[asleep] = 1
    model.done(false)
  }
}

function stallMoves(model: Model, process: number): void {
  const fields = model.process(process)
  if (model.from[fields.stalled] === 0 || model.from[fields.asleep] !== 0) return
  const id = model.from[fields.session] as number
  model.begin(() => `${nameOf(model, process)}: its rounds get through again`)
  model.row[fields.stalled] = 0
  model.done(true)
  const sinceMs = id === 0 ? null : model.sessions.hangsSince(id)
  if (sinceMs === null) return
  model.begin(() => `${nameOf(model, process)}: the reply of its proof arrives`)
  const { session, end } = model.sessions.step(id, { type: 'proved', sentAtMs: sinceMs })
  if (end === null) model.row[fields.session] = session
  else model.endSession(process, end)
  model.row[fields.stalled] = 0
  model.done(true)
}
