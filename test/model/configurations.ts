/**
 * The configurations that are searched, by scope: each scope includes the smaller ones. Within a scope the
 * small ones stand first. What a budget allows is spent in any sequence and at any moment.
 */
import { type Budget, type Settings, settingsOf } from './settings.ts'

export const SCOPES = ['smallest', 'ci', 'full'] as const
export type Scope = (typeof SCOPES)[number]

export type Configuration = {
  readonly name: string
  /** The smallest scope that it belongs to. */
  readonly scope: Scope
  readonly settings: Settings
  /** Also searched for states from which nothing heals. */
  readonly liveness: boolean
}

const EMPTY = { start: 'empty' as const }
const HOSTILE = { honest: false }
const FENCED = { fenced: true, honest: false }
const ANY = { planner: 'any' as const }
const MACHINE = { planner: 'machine' as const, rebalancers: 1 }
const TWO_MACHINES = { ...MACHINE, rebalancers: 2 }
const EVICT = { ...MACHINE, timed: true, wedged: true, policy: 'evict' as const }

/** A few seconds: part of the tests. */
const SMALLEST: readonly Configuration[] = [
  // Elections.
  smallest('elected, hostile store', { lost: 1, late: 1, drops: 1 }, { ...HOSTILE, ...EMPTY }),
  smallest('elected again after a pause', { expiries: 1, sessions: 1, late: 1, work: 1 }),
  smallest('a living owner is taken for dead', { bold: 1, lost: 1, revokes: 1 }, ANY),
  smallest('a member ends its session', { closes: 1, lost: 1, late: 1 }, EMPTY),
  smallest('killed and started again', { crashes: 1, lost: 1, sessions: 1 }),
  smallest('acquire fails', { failures: 2, late: 1 }, { ...EMPTY, commitsMax: 6 }),
  // Planned moves, by any number of rebalancers, elected and deposed, dead at any moment.
  smallest('moved and turned', { revokes: 1, rewrites: 2, work: 1, late: 1 }, ANY),
  smallest('moved, lost replies', { revokes: 1, rewrites: 1, lost: 1, late: 1 }, ANY),
  smallest('moved, hostile store', { revokes: 1, drops: 1, sessions: 1 }, { ...HOSTILE, ...ANY }),
  smallest('moved twice, turned once', { revokes: 2, rewrites: 1 }, ANY),
  smallest('given up and moved at once', { revokes: 1, leaves: 1, work: 1 }, ANY),
  smallest(
    'wedged, fence',
    { revokes: 1, work: 1, forces: 1, expiries: 1 },
    { ...FENCED, ...ANY, wedged: true },
  ),
  smallest('wedged, wait', { revokes: 1, work: 1, expiries: 1 }, { ...ANY, wedged: true }),
  smallest(
    'wedged, evict',
    { revokes: 1, work: 1, expiries: 1 },
    { ...ANY, wedged: true, policy: 'evict' },
  ),
  smallest(
    'forced, two resources',
    { revokes: 1, forces: 1, overdue: 1, work: 1 },
    { ...FENCED, ...ANY, resources: 2 },
  ),
  // The production rebalancer.
  smallest('ordered to move', { orders: 1, depositions: 1 }, TWO_MACHINES),
  smallest('ordered to move, lost replies', { orders: 1, lost: 1 }, MACHINE),
  smallest('evicted, in time', { orders: 1, work: 1 }, EVICT),
  // Time.
  smallest(
    'stopped and stalled, in time',
    { pauses: 1, stalls: 1, sessions: 1, work: 1 },
    { timed: true },
  ),
  // Restored stores.
  smallest('the incarnation rises', { raises: 1, revokes: 1, lost: 1 }, { ...ANY, commitsMax: 6 }),
  smallest('restored over a raise', { restores: 1, raises: 2 }, { commitsMax: 6 }),
  smallest(
    'restored over a move',
    { restores: 1, raises: 1, revokes: 1 },
    { ...ANY, commitsMax: 6 },
  ),
  smallest(
    'restored to nothing, fenced',
    { restores: 1, raises: 1, work: 1 },
    { ...FENCED, ...EMPTY, resources: 1 },
  ),
  smallest(
    'restored, fenced',
    { restores: 1, raises: 1, work: 1, leaves: 1 },
    { ...FENCED, resources: 1 },
  ),
]

const CI: readonly Configuration[] = [
  ci(
    'pause, expiry, lost reply',
    { lost: 1, expiries: 1, sessions: 1, revokes: 1, rewrites: 1, work: 1 },
    ANY,
  ),
  ci('ordered to move, and back', { orders: 2 }, MACHINE),
  ci(
    'stopped and stalled while moved, in time',
    { pauses: 1, stalls: 1, revokes: 1, sessions: 1, work: 1 },
    { ...ANY, timed: true },
  ),
  ci(
    'forced, lost reply, hostile store',
    { revokes: 1, forces: 1, overdue: 1, work: 1, lost: 1, drops: 1 },
    { ...FENCED, ...ANY, resources: 2 },
  ),
  ci(
    'two partitions, moved, expiry',
    { revokes: 1, expiries: 1, work: 1 },
    { ...ANY, partitions: 2 },
  ),
  ci(
    'two processes of one name',
    { expiries: 1, sessions: 1, revokes: 1 },
    { ...ANY, processes: ['a', 'b', 'a'] },
  ),
]

const FULL: readonly Configuration[] = [
  full(
    'two pauses or expiries, lost reply',
    { lost: 1, expiries: 2, sessions: 1, revokes: 1, rewrites: 1 },
    ANY,
  ),
  full(
    'everything late, hostile store',
    { lost: 1, late: 1, drops: 1, sessions: 1, revokes: 1 },
    { ...HOSTILE, ...ANY },
  ),
  full(
    'stopped while moved, lost reply, in time',
    { pauses: 1, revokes: 1, lost: 1, sessions: 1, work: 1 },
    { ...ANY, timed: true },
  ),
  full(
    'two rebalancers ordered, deposed, lost reply',
    { orders: 1, lost: 1, depositions: 1 },
    TWO_MACHINES,
  ),
  full('ordered to move, expiry', { orders: 1, expiries: 1, sessions: 1 }, MACHINE),
  full(
    'two partitions, expiry, lost reply',
    { revokes: 1, lost: 1, expiries: 1 },
    { ...ANY, partitions: 2 },
  ),
  full(
    'two processes of one name, lost reply',
    { expiries: 1, sessions: 1, lost: 1, revokes: 1 },
    { ...ANY, processes: ['a', 'b', 'a'] },
  ),
  full(
    'three members, expiry, lost reply',
    { revokes: 1, expiries: 1, lost: 1 },
    { ...ANY, processes: ['a', 'b', 'c'] },
  ),
  full(
    'restored, two resources, moved, lost reply',
    { restores: 1, raises: 1, work: 1, revokes: 1, lost: 1 },
    { ...FENCED, ...ANY, resources: 2 },
  ),
]

export const CONFIGURATIONS: readonly Configuration[] = [...SMALLEST, ...CI, ...FULL]

export function configurationsOf(scope: Scope): readonly Configuration[] {
  const limit = SCOPES.indexOf(scope)
  return CONFIGURATIONS.filter((one) => SCOPES.indexOf(one.scope) <= limit)
}

type Changed = Partial<Omit<Settings, 'budget'>>

function smallest(name: string, budget: Partial<Budget>, changed: Changed = {}): Configuration {
  return { name, scope: 'smallest', settings: settingsOf(budget, changed), liveness: true }
}

function ci(name: string, budget: Partial<Budget>, changed: Changed = {}): Configuration {
  return { name, scope: 'ci', settings: settingsOf(budget, changed), liveness: true }
}

function full(name: string, budget: Partial<Budget>, changed: Changed = {}): Configuration {
  return { name, scope: 'full', settings: settingsOf(budget, changed), liveness: true }
}
