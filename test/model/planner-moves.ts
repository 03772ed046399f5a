/**
 * Rebalancers that may ask for any move at any time, the elected one and those deposed. Their commits are
 * the production ones, from whatever record stands.
 *
 * Reduction: a rebalancer's commit is sent and executed in one move. It compares the record's whole value,
 * so between the two nothing can have happened to the record; what else may have happened (its deposition,
 * the end of the grantee's session, a risen incarnation) only makes the store refuse it, and each of these is
 * reached here too, since even a deposed rebalancer sends, and grantees may be dead ones.
 *
 * Reduction: who is elected is no part of the state. The election may pass on at any moment, any number of
 * times, and no record names its rebalancer, so one sender stands for all of them, elected at the moment at
 * which its commit lands; of everything that it sends it is also asked what would become of it were it
 * deposed by then. This is any number of rebalancers and depositions.
 */
import { processOf, sessionNumber } from './cast.ts'
import type { Model } from './model.ts'
import type { Wish } from './planner-commits.ts'
import { land } from './request-moves.ts'
import { operationName } from './words.ts'

/** Who the store calls elected, as long as somebody's commit is being looked at. */
const NOBODY = 0
const SENDER = 1
const OTHER = 2

export function plannerMoves(model: Model): void {
  for (let partition = 0; partition < model.settings.partitions; partition += 1) {
    const record = model.from[model.layout.records + partition] as number
    if (record === 0) continue
    for (const wish of model.planner.wishes(record)) send(model, wish)
    if (model.settings.fenced && model.has('forces')) forceMoves(model, record)
  }
}

function forceMoves(model: Model, record: number): void {
  const { owner, stored } = model.words.records.of(record)
  if (stored.record.phase !== 'revoking') return
  const incarnation = model.from[model.layout.incarnation] as number
  for (const grantee of grantees(model)) {
    if (model.cast.name(processOf(grantee)) === model.cast.name(processOf(owner))) continue
    send(model, model.planner.force(record, grantee, incarnation))
  }
}

/** Sessions that stand, and those that a map behind the store still shows. */
function grantees(model: Model): readonly number[] {
  const sessions = new Set<number>()
  for (let name = 0; name < model.cast.names.length; name += 1) {
    const stands = model.from[model.layout.leases + name] as number
    if (stands !== 0) sessions.add(stands)
  }
  for (const [process, { opened }] of model.layout.processes.entries()) {
    const life = model.from[opened] as number
    if (life > 0) sessions.add(sessionNumber(process, life))
  }
  return [...sessions]
}

function send(model: Model, wish: Wish): void {
  if (!model.has(wish.key) || (wish.key === 'forces' && !model.settings.fenced)) return
  let number = 0
  while (model.mentions(operationName(wish.content, number))) number += 1
  const commit = model.planner.number(wish, number)
  deposedMove(model, wish, commit)
  model.begin(() => `rebalancer: ${wish.words}`)
  model.row[model.layout.elected] = SENDER
  if (model.store.judge(model.row, commit) !== 'done') return
  model.spend(wish.key)
  land(model, commit, { type: 'rebalancer', elected: true })
  model.row[model.layout.elected] = NOBODY
  model.done(false)
}

/** The same from one that is not elected any more: the store must refuse it. */
function deposedMove(model: Model, wish: Wish, commit: number): void {
  for (const elected of [NOBODY, OTHER]) {
    model.begin(() => `deposed rebalancer: ${wish.words}`)
    model.row[model.layout.elected] = elected
    if (model.store.judge(model.row, commit) !== 'done') continue
    land(model, commit, { type: 'rebalancer', elected: false })
  }
}
