/**
 * The rebalancer: the elected planner of a group. A step folds in one event, then looks at everything
 * that might be due: it is driven by what stands in etcd, not by what it remembers, so that a successor
 * goes on where another left off.
 *
 *   changed / answered / wrote / wake
 *      └▶ follow moves ▶ evictions ▶ operators' rebalances ▶ retarget ▶ deadlines ▶ plan ▶ release
 *
 * I1  every commit and write compares this rebalancer's election (S9).
 * I2  at most one pending move per partition; at most one commit per partition is under way.
 * I3  moves under way never exceed the churn budget, explicit moves of operators apart (they are counted
 *     and do not wait), and overdue ones apart: a stuck drain must not hold up other partitions (L3).
 * I4  the rebalancer grants only by force, in a fenced group, past the drain's deadline.
 * I5  nothing here recovers vacant partitions: members elect themselves, with or without a rebalancer.
 *
 * Failure cases: an answer is lost (the slot rests, then the map decides: every commit compares the whole
 * record, so a late landing and a repetition exclude each other); deposed (the driver drops the state;
 * late writes fail on the election); records of an older incarnation are left to their owners.
 */
import type { PartitionId, SessionId } from './ids.ts'
import { serveRequests } from './rebalance-requests.ts'
import { REST_MS, RebalancerDraft } from './rebalancer-draft.ts'
import { serveEvictions } from './rebalancer-evictions.ts'
import { enforceDeadlines, followPartition, retargetMoves } from './rebalancer-moves.ts'
import { PASSES_MAX, plan, release } from './rebalancer-plan.ts'
import type {
  RebalancerEvent,
  RebalancerState,
  RebalancerStep,
  RebalancerView,
} from './rebalancer-state.ts'

/** Elected: looks over the whole group once, then only at what changes. */
export function startRebalancer(
  session: SessionId,
  view: RebalancerView,
  nowMs: number,
): RebalancerStep {
  const partitions: PartitionId[] = []
  for (let partition = 0; partition < view.group.partitions; partition += 1) {
    if (view.group.phase(partition) === 'revoking') partitions.push(partition)
  }
  return stepRebalancer(emptyState(session, view.by), { type: 'changed', partitions }, view, nowMs)
}

export function stepRebalancer(
  state: RebalancerState,
  event: RebalancerEvent,
  view: RebalancerView,
  nowMs: number,
): RebalancerStep {
  const { config, incarnation } = view.group
  // Wiped: there is no group to plan for until somebody creates it anew.
  if (config === null || incarnation === null) return { state, actions: [], wakeAtMs: null }
  const draft = new RebalancerDraft(state, view, config, nowMs)
  fold(draft, event)
  // What was asked for and never showed in the map ends as refused, once its answer has rested.
  for (const partition of draft.endRests()) followPartition(draft, partition)
  endFreeze(draft)
  serveEvictions(draft)
  serveRequests(draft)
  if (view.group.disabledGroup === null) {
    retargetMoves(draft)
    enforceDeadlines(draft)
    plan(draft)
    release(draft)
  }
  return draft.close()
}

function fold(draft: RebalancerDraft, event: RebalancerEvent): void {
  switch (event.type) {
    case 'changed':
      for (const partition of event.partitions) followPartition(draft, partition)
      return
    case 'answered':
      for (const partition of event.partitions) {
        followPartition(draft, partition)
        draft.restUnchanged(partition)
      }
      return
    case 'wrote':
      // Whether it landed is for the map to show; until it does, the same write must not go again.
      if (event.inView) draft.slots.delete(event.slot)
      else draft.rest(event.slot, REST_MS)
      return
    case 'wake':
      return
    case 'several':
      for (const one of event.events) fold(draft, one)
      return
    default:
      event satisfies never
  }
}

/** A freeze that was set until some time ends then; the mark goes, so that everyone sees it. */
function endFreeze(draft: RebalancerDraft): void {
  const { freeze } = draft.group
  if (freeze === null || freeze.untilMs === null) return
  const leftMs = freeze.untilMs - draft.view.wallMs
  if (leftMs > 0) draft.wakeAt(draft.nowMs + leftMs)
  else if (!draft.isBusy('freeze')) draft.write('freeze', { type: 'unfreeze', mark: freeze })
}

function emptyState(session: SessionId, by: string): RebalancerState {
  return {
    session,
    moves: new Map(),
    queue: [],
    commits: new Map(),
    slots: new Map(),
    balance: {
      signature: '',
      dueAtMs: null,
      id: null,
      by,
      incomplete: false,
      passesLeft: PASSES_MAX,
      vacancyDelayMs: 0,
    },
    drainsDueAtMs: null,
    requests: new Map(),
    evictions: new Map(),
    released: [],
  }
}
