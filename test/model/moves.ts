/** Everything that can happen next in a state. */
import { machineMoves } from './machine-moves.ts'
import { memberMoves } from './member-moves.ts'
import type { Model } from './model.ts'
import { operatorMoves } from './operator-moves.ts'
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
  if (model.settings.planner === 'machine') machineMoves(model)
  operatorMoves(model)
}
