/**
 * What a scenario does first, told apart and held against nothing: some of it is new to the processes, and
 * the engine compiles as it goes. Rounds for nothing may follow, until what is measured then is warm.
 */
import type { BenchCase, BenchContext, Figures, ScenarioName } from './bench-types.ts'
import { TENURE } from './evaluate.ts'

export function firstCase(
  context: BenchContext,
  options: {
    readonly scenario: ScenarioName
    readonly name: string
    readonly warmUpRounds: number
    measure(round: string): Promise<Figures>
  },
): BenchCase {
  const { scenario, name, warmUpRounds, measure } = options
  const first = async () => {
    const figures = await measure('first')
    for (let round = 0; round < warmUpRounds; round += 1) {
      context.progress(`${scenario}: warming up, ${round + 1} of ${warmUpRounds}`)
      await measure(`warm-${round}`)
    }
    return figures
  }
  return {
    ...{ name, rounds: 1, comparisons: [], rivalSettings: null },
    contenders: [{ name: TENURE, measure: first }],
  }
}
