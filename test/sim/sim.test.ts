/**
 * Plan: a taste of the simulation on short worlds, one process. `npm run sim -- --seeds 3000` is the meal.
 * A seed that fails here is printed shrunk, with its timeline and the command that repeats it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawPlan } from './draw-plan.ts'
import { explainFailure } from './explain-failure.ts'
import { KEPT_SEEDS } from './kept-seeds.ts'
import type { Plan } from './plan.ts'
import { runPlan } from './run-plan.ts'

const SEEDS = 60

async function assertHolds(plan: Plan): Promise<void> {
  const { breach, figures } = await runPlan(plan)
  if (breach !== null) assert.fail((await explainFailure(plan)).join('\n'))
  assert.ok(figures.grants >= plan.shape.partitions, 'nothing was granted')
  assert.ok(figures.admissions > 0, 'nothing worked')
}

test(`${SEEDS} seeds, every promise holds`, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    await assertHolds(drawPlan(String(seed), 'short'))
  }
})

test('the same plan takes the same steps', async () => {
  const plan = drawPlan('twice', 'short')
  const [one, other] = [await runPlan(plan), await runPlan(plan)]
  assert.equal(one.traceHash, other.traceHash)
  assert.deepEqual(one.figures, other.figures)
  const another = await runPlan(drawPlan('thrice', 'short'))
  assert.notEqual(one.traceHash, another.traceHash)
})

for (const { name, found, plan } of KEPT_SEEDS) {
  test(`kept: ${name}: ${found}`, () => assertHolds(plan))
}
