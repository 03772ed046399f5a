/**
 * The configurations that are searched, by scope: each scope includes the smaller ones. Within a scope the
 * small ones stand first.
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

const HOSTILE = { honest: false }
const FENCED = { fenced: true, honest: false }
const ANY = { planner: 'any' as const }
const MACHINE = { planner: 'machine' as const, rebalancers: 1 }

export const CONFIGURATIONS: readonly Configuration[] = [
  // Elections.
  of(
    'smallest',
    'elected, hostile store',
    { lost: 1, late: 1, drops: 1 },
    { ...HOSTILE, start: 'empty' },
  ),
  of('smallest', 'elected again after a pause', { expiries: 1, sessions: 1, late: 1, work: 1 }),
  of('smallest', 'maps that take a living owner for dead', { bold: 1, lost: 1, revokes: 1 }, ANY),
  of('smallest', 'a member ends its session', { closes: 1, lost: 1, late: 1 }, { start: 'empty' }),
  of('smallest', 'killed and started again', { crashes: 1, lost: 1, sessions: 1 }),
  of('smallest', 'acquire fails', { failures: 2, late: 1 }, { commitsMax: 6, start: 'empty' }),
  // Planned moves.
  of(
    'smallest',
    'moved and turned, late replies',
    { revokes: 1, rewrites: 2, work: 1, late: 1 },
    ANY,
  ),
  of('smallest', 'moved with lost replies', { revokes: 1, rewrites: 1, lost: 1, late: 1 }, ANY),
  of(
    'smallest',
    'moved while sessions end',
    { revokes: 1, drops: 1, sessions: 1 },
    { ...HOSTILE, ...ANY },
  ),
  of('smallest', 'moved twice, turned once', { revokes: 2, rewrites: 1 }, ANY),
  of('smallest', 'given up and moved at once', { revokes: 1, leaves: 1, work: 1 }, ANY),
  // Drains that never end, with a rebalancer that dies at any moment.
  of(
    'smallest',
    'wedged, fence',
    { revokes: 1, work: 1, forces: 1, expiries: 1 },
    { ...FENCED, ...ANY, wedged: true },
  ),
  of('smallest', 'wedged, wait', { revokes: 1, work: 1, expiries: 1 }, { ...ANY, wedged: true }),
  of(
    'smallest',
    'wedged, evict',
    { revokes: 1, work: 1, expiries: 1 },
    { ...ANY, wedged: true, policy: 'evict' },
  ),
  // Fenced.
  of(
    'smallest',
    'forced, two resources',
    { revokes: 1, forces: 1, overdue: 1, work: 1 },
    { ...FENCED, ...ANY, resources: 2 },
  ),
  // The production rebalancer.
  of('smallest', 'ordered to move', { orders: 1, lost: 1 }, MACHINE),
  of('ci', 'ordered to move, and back', { orders: 2 }, MACHINE),
  of(
    'smallest',
    'evicted, in time',
    { orders: 1, work: 1 },
    { ...MACHINE, timed: true, wedged: true, policy: 'evict' },
  ),
  // Time.
  of(
    'smallest',
    'stopped and stalled, in time',
    { pauses: 1, stalls: 1, sessions: 1, work: 1 },
    { timed: true },
  ),
  // Restores.
  of('smallest', 'the incarnation rises', { raises: 1, revokes: 1, lost: 1 }, ANY),
  of('smallest', 'restored over a raise', { restores: 1, raises: 2 }),
  of('smallest', 'restored over a move', { restores: 1, raises: 1, revokes: 1 }, ANY),
  of(
    'smallest',
    'restored, fenced',
    { restores: 1, raises: 1, work: 1, leaves: 1 },
    { ...FENCED, resources: 1 },
  ),

  of(
    'full',
    'F1',
    { lost: 1, expiries: 2, sessions: 1, revokes: 1, rewrites: 1, work: 1 },
    ANY,
  ),
  of(
    'full',
    'F2',
    { lost: 1, late: 1, expiries: 1, drops: 1, sessions: 1, revokes: 1 },
    { ...HOSTILE, ...ANY },
  ),
  of(
    'full',
    'F3',
    { revokes: 1, forces: 1, overdue: 1, work: 1, lost: 1, drops: 1, sessions: 1 },
    { ...FENCED, ...ANY, resources: 2 },
  ),
  of(
    'full',
    'F4',
    { orders: 2, lost: 1, depositions: 1, expiries: 1, sessions: 1 },
    { ...MACHINE, rebalancers: 2 },
  ),
  of(
    'full',
    'F5',
    { orders: 1, depositions: 1, pauses: 1, sessions: 1, work: 1 },
    { ...MACHINE, rebalancers: 2, timed: true, wedged: true, policy: 'evict' },
  ),
  of(
    'full',
    'F6',
    { pauses: 1, stalls: 1, revokes: 1, lost: 1, sessions: 1, work: 1 },
    { ...ANY, timed: true },
  ),
  of(
    'full',
    'F7',
    { revokes: 1, lost: 1, expiries: 1, sessions: 1, work: 1 },
    { ...ANY, partitions: 2 },
  ),
  of(
    'full',
    'F8',
    { orders: 1, work: 1, sessions: 1 },
    { ...MACHINE, partitions: 2, timed: true, wedged: true, policy: 'evict' },
  ),
  of(
    'full',
    'F9',
    { expiries: 1, sessions: 1, lost: 1, revokes: 1 },
    { ...ANY, processes: ['a', 'b', 'a'] },
  ),
  of(
    'full',
    'FA',
    { restores: 1, raises: 2, lost: 1, work: 1, revokes: 1 },
    { ...FENCED, ...ANY, resources: 2 },
  ),
  of(
    'full',
    'FB',
    { revokes: 1, expiries: 1, lost: 1, sessions: 1 },
    { ...ANY, processes: ['a', 'b', 'c'] },
  ),
]

function of(
  scope: Scope,
  name: string,
  budget: Partial<Budget>,
  changed: Partial<Omit<Settings, 'budget'>> = {},
  liveness = true,
): Configuration {
  return { name, scope, settings: settingsOf(budget, changed), liveness }
}

export function configurationsOf(scope: Scope): readonly Configuration[] {
  const limit = SCOPES.indexOf(scope)
  return CONFIGURATIONS.filter((one) => SCOPES.indexOf(one.scope) <= limit)
}
