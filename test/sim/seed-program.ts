/** One worker process of the simulation: runs the seeds that it is sent, one after the other. */
import { drawPlan } from './draw-plan.ts'
import { runPlan } from './run-plan.ts'
import type { SeedOrder, SeedReply } from './seed-pool.ts'

async function answer({ seed, length, twice }: SeedOrder): Promise<SeedReply> {
  const before = process.cpuUsage()
  const plan = drawPlan(seed, length)
  const { breach, traceHash, figures } = await runPlan(plan)
  const { user, system } = process.cpuUsage(before)
  const again = twice ? (await runPlan(plan)).traceHash : null
  return { seed, breach, figures, cpuMs: (user + system) / 1000, traceHash, again }
}

process.on('message', (order: SeedOrder) => {
  answer(order).then(
    (reply) => {
      // Whoever asked may be gone by now.
      if (process.connected) process.send?.(reply)
    },
    (error: unknown) => {
      throw error
    },
  )
})
process.on('disconnect', () => process.exit(0))
