/** What every process of a simulated world stands on. */
import type { GroupSettings } from '../../src/core/group-config.ts'
import type { GroupName } from '../../src/core/ids.ts'
import type { GroupKeys } from '../../src/core/keys.ts'
import type { PreferenceOrderFactory } from '../../src/core/preference-order.ts'
import type { MemoryEtcd, MemoryNats, SeededRandom, VirtualClock } from '../../src/testing/index.ts'
import type { BreachBox } from './breach.ts'
import type { SessionLedger } from './session-ledger.ts'
import type { Trace } from './trace.ts'
import type { Effect } from './weather.ts'

export type WorldBase = {
  readonly group: GroupName
  readonly keys: GroupKeys
  readonly settings: GroupSettings
  readonly clock: VirtualClock
  readonly etcd: MemoryEtcd
  readonly nats: MemoryNats
  readonly random: SeededRandom
  readonly orderOf: PreferenceOrderFactory
  readonly ledger: SessionLedger
  readonly box: BreachBox
  readonly trace: Trace
  /** What all processes suffer from, by fault. */
  readonly effects: Map<number, Effect>
  /** Nothing is started any more. */
  isClosing: boolean
}
