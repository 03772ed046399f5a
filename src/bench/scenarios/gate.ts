/**
 * Gate: what an admission costs, beside one `performance.now()`, since a look at the clock is what an
 * admission cannot do without.
 */
import { DEFAULT_KEY_PREFIX } from '../../core/keys.ts'
import type { BenchProcess } from '../bench-processes.ts'
import type { BenchContext, Figures, Scenario } from '../bench-types.ts'
import { clearGroup } from '../clear-group.ts'
import { TENURE } from '../evaluate.ts'
import type { GateFigures } from '../gate-process.ts'
import { memberOf } from '../member-names.ts'
import { median } from '../spread.ts'

const CLOCK = 'performance.now()'
const BATCHES = 9

export const gate: Scenario = {
  name: 'gate',
  title: 'admission of one piece of work',
  async *cases(context) {
    const [one] = await context.processes.take(1)
    // Both are measured in one call, batch by batch, so the second contender only tells of it.
    let last: GateFigures | null = null
    yield {
      name: 'open gate',
      rounds: context.quick ? 3 : 10,
      contenders: [
        {
          name: TENURE,
          measure: async (round) => {
            last = await measure(context, one as BenchProcess, round)
            return figuresOf(last)
          },
        },
        {
          name: CLOCK,
          measure: async (round) => {
            last ??= await measure(context, one as BenchProcess, round)
            return [{ metric: 'one call', unit: 'ns', values: [median(last.nowNs)] }]
          },
        },
      ],
      comparisons: [
        {
          ...{ metric: 'admission', statistic: 'median', against: CLOCK },
          ...{ againstMetric: 'one call', target: { atMost: 3 } },
        },
      ],
      rivalSettings: null,
    }
  },
}

function figuresOf({ workNs, bareNs, checkNs }: GateFigures): Figures {
  const admission = workNs.map((work, batch) => work - (bareNs[batch] ?? 0))
  const note = 'p.work of an empty function, less an async function with no gate'
  return [
    { metric: 'admission', unit: 'ns', values: [median(admission)], note },
    { metric: 'p.work of an empty function', unit: 'ns', values: [median(workNs)] },
    { metric: 'an async function with no gate', unit: 'ns', values: [median(bareNs)] },
    { metric: 'p.check()', unit: 'ns', values: [median(checkNs)] },
  ]
}

async function measure(
  context: BenchContext,
  one: BenchProcess,
  round: number,
): Promise<GateFigures> {
  const group = `${context.runId}-gate-${round}`
  const { etcd, nats } = context.servers
  const settings = { partitions: 1, settle: { firstGrantMs: 0 } }
  const common = { group, keyPrefix: DEFAULT_KEY_PREFIX, settings, etcd, nats }
  const figures = await one.call('gate', { ...common, members: [memberOf(0)], batches: BATCHES })
  await clearGroup(context, group)
  return figures
}
