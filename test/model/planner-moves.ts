/**
 * Rebalancers that may ask for any move at any time, the elected one and those deposed. Their commits are
 * the production ones, from whatever record stands.
 *
 * Reduction: a rebalancer's commit is sent and executed in one move. It compares the record's whole value,
 * so between the two nothing can have happened to the record; what else may have happened (its deposition,
 * the end of the grantee's session, a risen incarnation) only makes the store refuse it, and each of these is
 * reached here too, since even a deposed rebalancer sends, and grantees may be dead ones.
 */
import { processOf, sessionNumber } from './cast.ts'
import type { Model } from './model.ts'
import type { Wish } from './planner-commits.ts'
import { land } from './request-moves.ts'
import { operationName } from './words.ts'

export function plannerMoves(model: Model): void {
  const { rebalancers, partitions } = model.settings
  for (let rebalancer = 0; rebalancer < rebalancers; rebalancer += 1) {
    for (let partition = 0; partition < partitions; partition += 1) {
      const record = model.from[model.layout.records + partition] as number
      if (record === 0) continue
      for (const wish of model.planner.wishes(rebalancer, record)) send(model, rebalancer, wish)
      if (model.settings.fenced && model.has('forces')) forceMoves(model, rebalancer, record)
    }
  }
  electionMoves(model)
}

/** The election passes to the next, or to nobody for a while. */
function electionMoves(model: Model): void {
  const { rebalancers } = model.settings
  const elected = model.from[model.layout.elected] as number
  if (elected === 0) {
    for (let next = 1; next <= rebalancers; next += 1) {
      model.begin(() => `rebalancer ${next} is elected`)
      model.row[model.layout.elected] = next
      model.done(false)
    }
  } else if (model.has('depositions')) {
    model.begin(() => `rebalancer ${elected} is deposed`)
    model.spend('depositions')
    model.row[model.layout.elected] = 0
    model.done(false)
  }
}

function forceMoves(model: Model, rebalancer: number, record: number): void {
  const { owner, stored } = model.words.records.of(record)
  if (stored.record.phase !== 'revoking') return
  const incarnation = model.from[model.layout.incarnation] as number
  for (const grantee of grantees(model)) {
    if (model.cast.name(processOf(grantee)) === model.cast.name(processOf(owner))) continue
    send(model, rebalancer, model.planner.force(rebalancer, record, grantee, incarnation))
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

function send(model: Model, rebalancer: number, wish: Wish): void {
  if (!model.has(wish.key) || (wish.key === 'forces' && !model.settings.fenced)) return
  let number = 0
  while (model.mentions(operationName(wish.content, number))) number += 1
  const commit = model.planner.number(wish, number)
  if (model.store.judge(model.from, commit) !== 'done') return
  model.begin(() => `rebalancer ${rebalancer + 1} ${wish.words}`)
  model.spend(wish.key)
  const elected = model.from[model.layout.elected] === rebalancer + 1
  land(model, commit, { type: 'rebalancer', elected })
  model.done(false)
}
