import { describeBreach } from './breach.ts'
import { drawPlan } from './draw-plan.ts'
import { runPlan } from './run-plan.ts'
const from = Number(process.argv[2] ?? 1)
const count = Number(process.argv[3] ?? 1)
const isVerbose = process.argv[4] === '-v'
for (let seed = from; seed < from + count; seed++) {
  const began = performance.now()
  const plan = drawPlan(String(seed))
  const result = await runPlan(plan)
  const took = performance.now() - began
  const { figures, breach } = result
  const faults = Object.values(figures.faults).reduce((a, b) => a + (b ?? 0), 0)
  console.log(
    `${seed}: ${(figures.simulatedMs / 1000).toFixed(0)} s in ${(took / 1000).toFixed(2)} s (${(figures.simulatedMs / took).toFixed(0)}x, ${((figures.events / took) * 1000).toFixed(0)}/s) faults ${faults} changes ${figures.ownershipChanges} adm ${figures.admissions} refused ${figures.refusedEffects} maps ${figures.mapComparisons} hash ${result.traceHash} ${breach === null ? 'ok' : describeBreach(breach)}`,
  )
  if (isVerbose) {
    const p = breach?.partition ?? null
    console.log(JSON.stringify(plan.shape), plan.probe)
    for (const e of [...result.trace].sort((a, b) => a.atMs - b.atMs))
      if (e.partition === null || p === null || e.partition === p) console.log((e.atMs / 1000).toFixed(3).padStart(9), e.partition ?? '-', e.text)
  }
}
