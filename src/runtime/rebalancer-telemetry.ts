/** What a rebalancer's step reports, as telemetry events. */
import type { GroupName } from '../core/ids.ts'
import type { RebalancerAction } from '../core/rebalancer-state.ts'
import type { Telemetry } from '../ports/telemetry.ts'

type Reported = Exclude<
  RebalancerAction,
  { readonly type: 'commit' } | { readonly type: 'write' } | { readonly type: 'close-lease' }
>

export function recordAction(telemetry: Telemetry, group: GroupName, action: Reported): void {
  switch (action.type) {
    case 'move-requested': {
      const { partition, from, to, reason } = action.move
      telemetry.record({ type: 'move-requested', group, partition, from, to, reason })
      return
    }
    case 'rebalance-changed': {
      const { id, state, note } = action.record
      telemetry.record({ type: 'rebalance-changed', group, id, state, note })
      return
    }
    default:
      telemetry.record({ group, ...action })
  }
}
