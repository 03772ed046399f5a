/** What a rebalancer's step reports, as telemetry events. */
import type { GroupName } from '../core/ids.ts'
import type { RebalancerAction } from '../core/rebalancer-state.ts'
import type { Telemetry } from '../ports/telemetry.ts'

type Reported = Exclude<
  RebalancerAction,
  { readonly type: 'commit' } | { readonly type: 'write' } | { readonly type: 'close-lease' }
>

export function recordAction(telemetry: Telemetry, group: GroupName, action: Reported): void {
  if (action.type !== 'move-requested') {
    telemetry.record({ group, ...action })
    return
  }
  const { partition, from, to, reason } = action.move
  telemetry.record({ type: 'move-requested', group, partition, from, to, reason })
}
