/** Runs a failing plan again, shrinks it, and tells its story. */
import { describeBreach } from './breach.ts'
import type { Plan } from './plan.ts'
import { runPlan } from './run-plan.ts'
import { shrink } from './shrink.ts'
import { describePlan, timelineOf } from './timeline.ts'

const SHRINK_RUNS_MAX = 150
const SHRINK_LIMIT_MS = 90_000
const TIMELINE_LINES_MAX = 120

export async function explainFailure(
  plan: Plan,
  { isShrunk = false }: { readonly isShrunk?: boolean } = {},
): Promise<readonly string[]> {
  const first = await runPlan(plan)
  if (first.breach === null) return ['  run again, it holds: the first run took other steps']
  const untilMs = performance.now() + SHRINK_LIMIT_MS
  const limits = { runs: SHRINK_RUNS_MAX, isOutOfTime: () => performance.now() > untilMs }
  const small = isShrunk ? { plan, runs: 0 } : await shrink(plan, first.breach.promise, limits)
  const { breach, trace } = await runPlan(small.plan)
  if (breach === null) throw new Error('a shrunk plan holds')
  const kept = plan.faults.flatMap((fault, index) => {
    return small.plan.faults.includes(fault) ? [index] : []
  })
  const counts = `${small.plan.faults.length} of ${plan.faults.length} faults, ${small.runs} runs`
  return [
    describeBreach(breach),
    `shrunk to ${counts}:`,
    ...describePlan(small.plan),
    ...timelineOf(trace, breach, TIMELINE_LINES_MAX),
    `again: npm run sim -- --seeds 1 --from ${plan.seed} --keep ${kept.join()}`,
    `as data: ${JSON.stringify(small.plan)}`,
  ]
}
