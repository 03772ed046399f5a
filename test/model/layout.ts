/**
 * A state of the composed world as one row of small integers: what stands in the store, what each process
 * and each rebalancer knows, what is on its way. Everything larger (records, seats, requests) is kept once
 * in a table and named by its number, so that a state is compared, copied and stored as plain numbers.
 */
import { BUDGET_KEYS, type BudgetKey, type Settings } from './settings.ts'

/** Places of one process inside a row. */
export type ProcessFields = {
  /** The session machine's state; 0: none. */
  readonly session: number
  /** Sessions opened so far. */
  readonly opened: number
  /** 1: the process has ended and does not come back. */
  readonly exited: number
  /** The incarnation that it knows. */
  readonly incarnation: number
  /** 1: it is stopped. */
  readonly asleep: number
  /** 1: the rounds of its session fail. */
  readonly stalled: number
  readonly requests: number
  readonly replies: number
  /**
   * By partition: the seat; the grant under which work runs, negative once that was lost; the record that
   * its map shows.
   */
  readonly seats: number
  readonly works: number
  readonly maps: number
  /** By partition: how many resources are sealed under the grant that is being acquired. */
  readonly seals: number
}

/** Places of one rebalancer that runs the production machine. */
export type RebalancerFields = {
  readonly state: number
  /** What its map shows. */
  readonly view: number
  readonly requests: number
}

export type Layout = {
  readonly width: number
  readonly incarnation: number
  /** By partition. */
  readonly records: number
  /** By name: the session whose key stands (0: none), thirds of T left to it, 1 when marked for eviction. */
  readonly leases: number
  readonly left: number
  readonly marks: number
  /** The rebalancer that the store calls elected; 0: none. */
  readonly elected: number
  /** Operators' rebalances. */
  readonly orders: number
  readonly backup: number
  readonly restored: number
  /** By partition and resource: the highest token sealed. */
  readonly sealed: number
  /** By partition: the token of the newest owner that read the resources. */
  readonly readers: number
  /** By partition: commits since the last fault. */
  readonly commits: number
  readonly processes: readonly ProcessFields[]
  readonly rebalancers: readonly RebalancerFields[]
  readonly budget: Readonly<Record<BudgetKey, number>>
}

export function layoutOf(settings: Settings): Layout {
  const { partitions, resources, processes, rebalancers, planner } = settings
  const names = new Set(processes).size
  let width = 0
  const take = (count = 1) => {
    const at = width
    width += count
    return at
  }
  const common = {
    incarnation: take(),
    records: take(partitions),
    leases: take(names),
    left: take(names),
    marks: take(names),
    elected: take(),
    orders: take(),
    backup: take(),
    restored: take(),
    sealed: take(partitions * resources),
    readers: take(partitions),
    commits: take(partitions),
  }
  const perProcess = processes.map(() => ({
    session: take(),
    opened: take(),
    exited: take(),
    incarnation: take(),
    asleep: take(),
    stalled: take(),
    requests: take(),
    replies: take(),
    seats: take(partitions),
    works: take(partitions),
    maps: take(partitions),
    seals: take(partitions),
  }))
  const machines = planner === 'machine' ? rebalancers : 0
  const perRebalancer = Array.from({ length: machines }, () => ({
    state: take(),
    view: take(),
    requests: take(),
  }))
  const budget = Object.fromEntries(BUDGET_KEYS.map((key) => [key, take()])) as Layout['budget']
  return { ...common, processes: perProcess, rebalancers: perRebalancer, budget, width }
}
