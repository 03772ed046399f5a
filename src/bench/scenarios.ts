/** All scenarios, in the order in which they run. */
import type { Scenario } from './bench-types.ts'
import { acquire } from './scenarios/acquire.ts'
import { broadcast } from './scenarios/broadcast.ts'
import { churn } from './scenarios/churn.ts'
import { failover } from './scenarios/failover.ts'
import { fence } from './scenarios/fence.ts'
import { gate } from './scenarios/gate.ts'
import { lookup } from './scenarios/lookup.ts'
import { rolling } from './scenarios/rolling.ts'
import { scale } from './scenarios/scale.ts'
import { scaleOut } from './scenarios/scale-out.ts'

export const SCENARIOS: readonly Scenario[] = [
  acquire,
  churn,
  failover,
  gate,
  lookup,
  broadcast,
  fence,
  scaleOut,
  rolling,
  scale,
]
