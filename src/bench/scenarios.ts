/** All scenarios, in the order in which they run. */
import type { Scenario } from './bench-types.ts'
import { acquire } from './scenarios/acquire.ts'
import { churn } from './scenarios/churn.ts'
import { failover } from './scenarios/failover.ts'
import { gate } from './scenarios/gate.ts'
import { lookup } from './scenarios/lookup.ts'

export const SCENARIOS: readonly Scenario[] = [acquire, churn, failover, gate, lookup]
