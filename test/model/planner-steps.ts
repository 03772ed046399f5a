/**
 * Steps of the production rebalancer, each taken once. Its moments are kept relative to now, and those that
 * only a report looks at are left out, so that a rebalancer that has waited long looks like any other.
 */
import type { Commit } from '../../src/core/commit.ts'
import type { OperationId, PartitionId } from '../../src/core/ids.ts'
import type { PreferenceOrderFactory } from '../../src/core/preference-order.ts'
import { startRebalancer, stepRebalancer } from '../../src/core/rebalancer.ts'
import type {
  RebalancerEvent,
  RebalancerState,
  RebalancerStep,
  RebalancerView,
  Slot,
} from '../../src/core/rebalancer-state.ts'
import type { RecordWrite } from '../../src/core/rebalancer-writes.ts'
import { checkCommit } from '../../src/core/record-invariants.ts'
import { assertUnbroken } from './broken.ts'
import { rebalancerSession, sessionOf } from './cast.ts'
import { NEVER_MS, type Views } from './planner-view.ts'
import { TICK_MS, TTL_MS } from './session-steps.ts'
import { Memory, pair, Table } from './table.ts'
import type { Words } from './words.ts'

/** What a rebalancer sends. */
export type PlannerRequest =
  | { readonly type: 'commit'; readonly commit: Commit; readonly content: number }
  | { readonly type: 'write'; readonly slot: string; readonly write: RecordWrite }
  | { readonly type: 'close'; readonly slot: string; readonly session: number }

export type PlannerOutcome = {
  readonly state: number
  readonly requests: readonly PlannerRequest[]
}

type Entry = {
  readonly state: RebalancerState
  /** When it wants to be woken, from now; null: never. */
  readonly wakeInMs: number | null
}

/** Replaced by the model's own operation ids; the machine adds the partition's number to it. */
const STEP_OPERATION = '0'.repeat(16) as OperationId
/** Moments further back than these differ in nothing that is decided. */
const LONG_AGO_MS = { seen: 2 * TICK_MS, wrote: TICK_MS, marked: TTL_MS, rest: 0 }

const ORDER: PreferenceOrderFactory = (members) => {
  const sorted = [...members].sort()
  return { order: (_partition: PartitionId, count: number) => sorted.slice(0, count) }
}

export class PlannerSteps {
  private readonly states = new Table<Entry>()
  private readonly taken = new Map<string, PlannerOutcome>()
  private readonly older = new Memory<number>()
  private readonly views: Views
  private readonly words: Words

  constructor(views: Views, words: Words) {
    this.views = views
    this.words = words
  }

  of(id: number): Entry {
    return this.states.of(id)
  }

  start(rebalancer: number, view: number): PlannerOutcome {
    return this.once(`start ${rebalancer} ${view}`, () =>
      this.outcome(startRebalancer(rebalancerSession(rebalancer), this.view(view), 0), view),
    )
  }

  step(id: number, view: number, event: RebalancerEvent): PlannerOutcome {
    return this.once(`${id} ${view} ${JSON.stringify(event)}`, () =>
      this.outcome(stepRebalancer(this.states.of(id).state, event, this.view(view), 0), view),
    )
  }

  later(id: number, durationMs: number): number {
    return this.older.of(pair(id, durationMs), () => {
      const { state, wakeInMs } = this.states.of(id)
      return this.id(aged(state, durationMs), wakeInMs === null ? null : wakeInMs - durationMs)
    })
  }

  private view(id: number): RebalancerView {
    return {
      group: this.views.state(id),
      orderOf: ORDER,
      ttlMs: TTL_MS,
      wallMs: 0,
      by: 'r',
      stamp: { operation: STEP_OPERATION, atMs: 0 },
    }
  }

  private outcome({ state, actions, wakeAtMs }: RebalancerStep, view: number): PlannerOutcome {
    const requests: PlannerRequest[] = []
    for (const action of actions) {
      if (action.type === 'commit') {
        const { commit } = action
        this.check(commit, view)
        requests.push({ type: 'commit', commit, content: this.words.content(commit) })
      } else if (action.type === 'write') {
        requests.push({ type: 'write', slot: action.slot, write: action.write })
      } else if (action.type === 'close-lease') {
        requests.push({ type: 'close', slot: action.slot, session: sessionOf(action.session) })
      }
    }
    return { state: this.id(aged(state, 0), wakeAtMs), requests }
  }

  private check(commit: Commit, view: number): void {
    const record = this.views.state(view).record(commit.partition)?.record ?? null
    assertUnbroken(checkCommit(record, commit, 'rebalancer'), 'rebalancer')
  }

  private id(state: RebalancerState, wakeInMs: number | null): number {
    const wake = wakeInMs === null || wakeInMs > NEVER_MS / 2 ? null : Math.max(0, wakeInMs)
    const { moves, commits, slots, requests, evictions, ...plain } = state
    const maps = [moves, commits, slots, requests, evictions].map((map) => [...map])
    const key = JSON.stringify([plain, maps, wake])
    return this.states.id(key, () => ({ state, wakeInMs: wake }))
  }

  private once(key: string, make: () => PlannerOutcome): PlannerOutcome {
    let outcome = this.taken.get(key)
    if (outcome === undefined) {
      outcome = make()
      this.taken.set(key, outcome)
    }
    return outcome
  }
}

/** The state as it looks so much later, told from then. */
function aged(state: RebalancerState, byMs: number): RebalancerState {
  const past = (atMs: number, what: keyof typeof LONG_AGO_MS) =>
    Math.max(-LONG_AGO_MS[what], atMs - byMs)
  const ahead = (atMs: number) => (atMs > NEVER_MS / 2 ? NEVER_MS : atMs - byMs)
  const rested = <Kind extends Slot>(slot: Kind): Kind => {
    return { ...slot, untilMs: slot.untilMs === null ? null : past(slot.untilMs, 'rest') }
  }
  const { balance, moves, commits, slots, requests, evictions } = state
  return {
    ...state,
    balance: { ...balance, dueAtMs: balance.dueAtMs === null ? null : ahead(balance.dueAtMs) },
    moves: new Map(
      [...moves].map(([partition, move]) => [
        partition,
        {
          ...move,
          askedAtMs: 0,
          seenAtMs: move.seenAtMs === null ? null : past(move.seenAtMs, 'seen'),
        },
      ]),
    ),
    commits: new Map([...commits].map(([partition, slot]) => [partition, rested(slot)])),
    slots: new Map([...slots].map(([name, slot]) => [name, rested(slot)])),
    requests: new Map(
      [...requests].map(([id, memory]) => [
        id,
        { ...memory, wroteAtMs: past(memory.wroteAtMs, 'wrote'), lookAtMs: 0 },
      ]),
    ),
    evictions: new Map(
      [...evictions].map(([member, known]) => [
        member,
        { ...known, sinceMs: past(known.sinceMs, 'marked') },
      ]),
    ),
    released: [],
  }
}
