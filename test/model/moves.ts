/**
 * Everything that can happen next in a state.
 *
 * Run as in production: the machines of ownership, session and rebalancer with their invariants, the gate,
 * the transactions of commits, claims, proofs and a rebalancer's writes, the fence rule. Made small here: the
 * store, the network, maps and hosts.
 *
 * Left out, so that the model does more than production would: who may campaign when (any member may, as soon
 * as its map has no living owner), balance and budgets (any move may be asked for at any time), back-offs.
 * Left out altogether: operators' marks (disable, cordon, freeze), settings that change, NATS and observers
 * (S8), inputs and their effects (S11), clocks of different speed. The simulator has those.
 */
import { machineMoves } from './machine-moves.ts'
import { memberMoves } from './member-moves.ts'
import type { Model } from './model.ts'
import { operatorMoves } from './operator-moves.ts'
import { orderMoves } from './order-moves.ts'
import { plannerMoves } from './planner-moves.ts'
import { requestMoves } from './request-moves.ts'
import { resourceMoves } from './resource-moves.ts'
import { leaseMoves, sessionMoves } from './session-moves.ts'
import { timeMoves } from './time-moves.ts'

/** Hands each to the model's `emit`; throws {@link Broken} in the middle of one that breaks a promise. */
export function allMoves(model: Model): void {
  for (const process of model.settings.processes.keys()) {
    requestMoves(model, process)
    if (model.from[model.process(process).asleep] !== 0) continue
    memberMoves(model, process)
    resourceMoves(model, process)
    sessionMoves(model, process)
  }
  for (let name = 0; name < model.cast.names.length; name += 1) leaseMoves(model, name)
  timeMoves(model)
  if (model.settings.planner === 'any') plannerMoves(model)
  if (model.settings.planner === 'machine') {
    machineMoves(model)
    orderMoves(model)
  }
  operatorMoves(model)
}
