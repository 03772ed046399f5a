/** All scenarios, in the order in which they run. */
import type { Scenario } from './bench-types.ts'
import { acquire } from './scenarios/acquire.ts'

export const SCENARIOS: readonly Scenario[] = [acquire]
