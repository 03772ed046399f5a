/**
 * What a configuration of the model fixes: how many of everything, what the store may do, and how often
 * each fault or order may occur. Whatever is spent from the budget is a fault or somebody's decision; all
 * other moves may be taken any number of times, and those are what a partition that heals may count on.
 */
import type { DrainPolicy } from '../../src/core/group-config.ts'

export const BUDGET_KEYS = [
  /** A request whose reply never comes; it may have landed, may land later, or never. */
  'lost',
  /** A reply that arrives at any later time. */
  'late',
  /** A piece of work that is admitted. */
  'work',
  /** A session whose deadline passes here before its proof came (a pause, a stall, a cut line). */
  'expiries',
  /** The store drops the lease of a session that lives. */
  'drops',
  /** Sessions opened after the first. */
  'sessions',
  /** A process that is killed and started again without memory. */
  'crashes',
  /** A member that gives up one partition, as it does when it leaves. */
  'leaves',
  /** A member that ends its session by itself. */
  'closes',
  /** An `acquire` that fails or overruns. */
  'failures',
  /** A drain that overruns its deadline. */
  'overdue',
  /** A campaign on the strength of a map that takes the owner for dead. */
  'bold',
  'revokes',
  'rewrites',
  'forces',
  /** The rebalancer's election passes on. */
  'depositions',
  'raises',
  'restores',
  /** A process that is stopped for a while: nothing of it runs but time. */
  'pauses',
  /** Rounds of a session that fail, or whose replies hang, for a while. */
  'stalls',
  /** An operator's order to the rebalancer's machine. */
  'orders',
] as const

export type BudgetKey = (typeof BUDGET_KEYS)[number]
export type Budget = Readonly<Record<BudgetKey, number>>

export type Settings = {
  /** Member names by process; two processes of one name are two lives of one member. */
  readonly processes: readonly string[]
  readonly partitions: number
  /**
   * `any`: rebalancers, however many, that may ask for any move at any time, also when deposed, which
   * includes all that a planner could do. `machine`: the production planner, that many of it, told what to
   * do by operators' orders.
   */
  readonly planner: 'none' | 'any' | 'machine'
  readonly rebalancers: number
  readonly fenced: boolean
  readonly policy: DrainPolicy
  /** The store drops a lease only when its member has stopped believing in it. */
  readonly honest: boolean
  /** Time passes in thirds of T for everybody alike; else a deadline passes at any moment. */
  readonly timed: boolean
  /** Fenced resources that an owner seals before it reads. */
  readonly resources: number
  /** How many of them the author's `acquire` seals before it reads: all, unless the author errs. */
  readonly sealsBeforeRead: number
  /** Work never ends by itself: each drain overruns its deadline. */
  readonly wedged: boolean
  /** Most commits on one partition between a fault and its recovery; 0: not counted. */
  readonly commitsMax: number
  readonly start: 'empty' | 'served'
  readonly budget: Budget
}

const NOTHING = Object.fromEntries(BUDGET_KEYS.map((key) => [key, 0])) as Budget

const PLAIN: Omit<Settings, 'budget' | 'sealsBeforeRead'> = {
  processes: ['a', 'b'],
  partitions: 1,
  rebalancers: 0,
  planner: 'none',
  fenced: false,
  policy: 'wait',
  honest: true,
  timed: false,
  resources: 0,
  wedged: false,
  commitsMax: 0,
  start: 'served',
}

export function settingsOf(
  budget: Partial<Budget>,
  changed: Partial<Omit<Settings, 'budget'>> = {},
): Settings {
  const policy = changed.fenced === true ? 'fence' : PLAIN.policy
  const sealsBeforeRead = changed.resources ?? PLAIN.resources
  return { ...PLAIN, policy, sealsBeforeRead, ...changed, budget: { ...NOTHING, ...budget } }
}
