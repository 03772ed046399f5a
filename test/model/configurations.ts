/** The configurations that are searched, by scope: each scope includes the smaller ones. */
import { type Settings, settingsOf } from './settings.ts'

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

export const CONFIGURATIONS: readonly Configuration[] = [
  {
    name: 'elected with lost replies, hostile store',
    scope: 'smallest',
    settings: settingsOf({ lost: 1, late: 1, drops: 1 }, { ...HOSTILE, start: 'empty' }),
    liveness: true,
  },
  {
    name: 'moved and turned, late replies',
    scope: 'smallest',
    settings: settingsOf({ revokes: 1, rewrites: 2, work: 1, late: 1 }, { rebalancers: 1 }),
    liveness: true,
  },
  {
    name: 'main',
    scope: 'full',
    settings: settingsOf(
      { lost: 1, expiries: 1, sessions: 1, revokes: 1, rewrites: 1, work: 1, depositions: 1 },
      { rebalancers: 2 },
    ),
    liveness: true,
  },
]

export function configurationsOf(scope: Scope): readonly Configuration[] {
  const limit = SCOPES.indexOf(scope)
  return CONFIGURATIONS.filter((one) => SCOPES.indexOf(one.scope) <= limit)
}
