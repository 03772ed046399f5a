/**
 * Evictions, ordered by an operator or by the drain policy: the mark stands under the member's own lease,
 * so from the mark on its proofs fail and its deadline cannot move. Once T has passed since this
 * rebalancer knew of the mark, every such deadline is over, and the lease is closed; elections follow.
 *
 *   marked (first seen) ──T──▶ closing the lease ──▶ mark and session gone
 *
 * A successor waits its own T from its own first sight. A late close by a deposed rebalancer harms
 * nobody: mark and lease are one session (V8).
 */
import type { RebalancerDraft } from './rebalancer-draft.ts'

export function serveEvictions(draft: RebalancerDraft): void {
  forgetEnded(draft)
  const waitMs = Math.max(draft.config.leaseTtlMs, draft.view.ttlMs)
  for (const member of draft.group.evictions.keys()) {
    const session = draft.group.members.get(member)?.session
    if (session === undefined) continue
    const known = draft.evictions.get(member) ?? { session, sinceMs: draft.nowMs }
    draft.evictions.set(member, known)
    const closeAtMs = known.sinceMs + waitMs
    if (draft.nowMs < closeAtMs) {
      draft.wakeAt(closeAtMs)
      continue
    }
    const slot = `close/${session}`
    if (draft.isBusy(slot)) continue
    draft.slots.set(slot, { untilMs: null })
    draft.actions.push({ type: 'close-lease', slot, member, session })
  }
}

function forgetEnded(draft: RebalancerDraft): void {
  for (const [member, { session }] of [...draft.evictions]) {
    const isOpen =
      draft.group.evictions.has(member) && draft.group.members.get(member)?.session === session
    if (isOpen) continue
    draft.evictions.delete(member)
    draft.actions.push({ type: 'eviction-closed', member })
  }
}
