/** All scenarios, in the order in which they run. */
import type { Scenario } from './bench-types.ts'
import { acquire } from './scenarios/acquire.ts'
import { churn } from './scenarios/churn.ts'

export const SCENARIOS: readonly Scenario[] = [acquire, churn]
