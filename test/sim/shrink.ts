/**
 * Makes a failing plan smaller: drops faults while the same promise still breaks, halves first, then one
 * by one. What is left is what it takes, or nearly so: each fault that goes shifts what follows.
 */
import type { PromiseName } from './breach.ts'
import type { Plan, PlannedFault } from './plan.ts'
import { runPlan } from './run-plan.ts'

export type Shrunk = { readonly plan: Plan; readonly runs: number }

export type ShrinkLimits = { readonly runs: number; isOutOfTime(): boolean }

export async function shrink(
  plan: Plan,
  promise: PromiseName,
  limits: ShrinkLimits,
): Promise<Shrunk> {
  let runs = 0
  const mayRun = () => runs < limits.runs && !limits.isOutOfTime()
  const breaks = async (candidate: Plan): Promise<boolean> => {
    runs += 1
    return (await runPlan(candidate)).breach?.promise === promise
  }
  let smallest = plan
  for (let size = Math.ceil(plan.faults.length / 2); size >= 1; size = Math.floor(size / 2)) {
    let start = 0
    while (start < smallest.faults.length && mayRun()) {
      const candidate = { ...smallest, faults: without(smallest.faults, start, size) }
      if (await breaks(candidate)) smallest = candidate
      else start += size
    }
  }
  return { plan: smallest, runs }
}

function without(
  faults: readonly PlannedFault[],
  start: number,
  count: number,
): readonly PlannedFault[] {
  return [...faults.slice(0, start), ...faults.slice(start + count)]
}
