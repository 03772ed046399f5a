/**
 * What Spin explores: the model of `tenure.pml` under one policy with so many faults of each kind, and the
 * properties to be shown. Each mutant takes one safeguard out of the model and must end in a cycle that
 * breaks the property named: it shows that the property can fail.
 */

export const POLICIES = ['WAIT', 'FENCE', 'EVICT'] as const
export const FAULTS = [
  'CRASHES',
  'EXPIRIES',
  'LOST',
  'WEDGES',
  'DEPOSALS',
  'RESTARTS',
  'LEAVES',
] as const
export const SCOPES = ['smallest', 'ci', 'full'] as const

/** Names of the `ltl` lines of the model. */
export type Property = 'L3' | 'L3acquire' | 'L4' | 'L6'
export type Scope = (typeof SCOPES)[number]

export type Configuration = {
  readonly name: string
  /** The smallest scope that runs it; larger ones do too. */
  readonly from: Scope
  readonly policy: (typeof POLICIES)[number]
  /** How many of each; one that is not named: none. */
  readonly faults: Readonly<Partial<Record<(typeof FAULTS)[number], number>>>
  /** Further macros of the model. */
  readonly defines?: readonly string[]
  readonly properties: readonly Property[]
  /** Of a mutant: each property must be broken. */
  readonly broken?: true
}

const SOUND: readonly Configuration[] = [
  {
    name: 'fence, a drain hangs',
    from: 'smallest',
    policy: 'FENCE',
    faults: { WEDGES: 1 },
    properties: ['L3', 'L3acquire', 'L6'],
  },
  {
    name: 'fence, a drain hangs, a member dies',
    from: 'ci',
    policy: 'FENCE',
    faults: { WEDGES: 1, CRASHES: 1 },
    properties: ['L3', 'L6'],
  },
  {
    name: 'fence, sessions end, answers are lost',
    from: 'ci',
    policy: 'FENCE',
    faults: { EXPIRIES: 1, LOST: 1 },
    properties: ['L4', 'L6'],
  },
  {
    name: 'fence, the rebalancer alone acts on a drain that hangs',
    from: 'ci',
    policy: 'FENCE',
    faults: { WEDGES: 1 },
    defines: ['IMMORTAL', 'MUTANT_NO_OWNER_DEADLINE'],
    properties: ['L3'],
  },
  {
    name: 'fence, no rebalancer, members leave and hang, die, come back',
    from: 'ci',
    policy: 'FENCE',
    faults: { WEDGES: 1, CRASHES: 1, LEAVES: 1, RESTARTS: 1 },
    defines: ['REBALANCERS=0'],
    properties: ['L3', 'L6'],
  },
  {
    name: 'evict, a drain hangs, a member dies',
    from: 'ci',
    policy: 'EVICT',
    faults: { WEDGES: 1, CRASHES: 1 },
    properties: ['L3', 'L4', 'L6'],
  },
  {
    name: 'evict, the rebalancer alone acts on a drain that hangs',
    from: 'ci',
    policy: 'EVICT',
    faults: { WEDGES: 1, DEPOSALS: 1 },
    defines: ['IMMORTAL', 'MUTANT_NO_OWNER_DEADLINE'],
    properties: ['L3'],
  },
  {
    name: 'wait, a drain hangs, an answer is lost',
    from: 'ci',
    policy: 'WAIT',
    faults: { WEDGES: 1, LOST: 1 },
    properties: ['L3acquire', 'L6'],
  },
  {
    name: 'fence, a member dies, sessions end, answers are lost',
    from: 'full',
    policy: 'FENCE',
    faults: { CRASHES: 1, EXPIRIES: 1, LOST: 1 },
    properties: ['L4', 'L6'],
  },
  {
    name: 'fence, a drain hangs or is slow, answers are lost',
    from: 'full',
    policy: 'FENCE',
    faults: { WEDGES: 1, LOST: 1 },
    defines: ['SLOW_WORK'],
    properties: ['L3', 'L3acquire', 'L6'],
  },
  {
    name: 'evict, a drain hangs, members die and come back',
    from: 'full',
    policy: 'EVICT',
    faults: { WEDGES: 1, CRASHES: 1, RESTARTS: 1 },
    properties: ['L3', 'L4', 'L6'],
  },
  {
    name: 'evict, a drain hangs, sessions end, answers are lost',
    from: 'full',
    policy: 'EVICT',
    faults: { WEDGES: 1, EXPIRIES: 1, LOST: 1, RESTARTS: 1 },
    properties: ['L3', 'L6'],
  },
]

const MUTANTS: readonly Configuration[] = [
  {
    name: 'mutant: no drain deadline at the owner (V11)',
    from: 'smallest',
    policy: 'FENCE',
    faults: { WEDGES: 1 },
    defines: ['MUTANT_NO_OWNER_DEADLINE'],
    properties: ['L3'],
    broken: true,
  },
  {
    name: 'mutant: a forced move needs a grantee (V11)',
    from: 'ci',
    policy: 'FENCE',
    faults: { WEDGES: 1, CRASHES: 1 },
    defines: ['MUTANT_FORCE_NEEDS_GRANTEE'],
    properties: ['L3'],
    broken: true,
  },
  {
    name: 'mutant: eviction as a phase, without a successor (V9)',
    from: 'smallest',
    policy: 'EVICT',
    faults: { WEDGES: 1 },
    defines: ['MUTANT_EVICT_PHASE'],
    properties: ['L6'],
    broken: true,
  },
  {
    name: 'mutant: elections of the phase vacant only',
    from: 'ci',
    policy: 'FENCE',
    faults: { CRASHES: 1 },
    defines: ['MUTANT_ELECT_VACANT_PHASE_ONLY'],
    properties: ['L6'],
    broken: true,
  },
  {
    name: 'mutant: a lost answer counts as no',
    from: 'ci',
    policy: 'FENCE',
    faults: { LOST: 1 },
    defines: ['MUTANT_UNKNOWN_IS_OVER'],
    properties: ['L4'],
    broken: true,
  },
  {
    name: 'mutant: a hand-over to the dead is sent for ever',
    from: 'ci',
    policy: 'FENCE',
    faults: { CRASHES: 1 },
    defines: ['MUTANT_NO_VACATE'],
    properties: ['L4'],
    broken: true,
  },
  {
    name: 'mutant: no deadline of acquire',
    from: 'ci',
    policy: 'FENCE',
    faults: { WEDGES: 1 },
    defines: ['MUTANT_NO_ACQUIRE_DEADLINE'],
    properties: ['L3acquire'],
    broken: true,
  },
  {
    name: 'the exception: wait promises nothing of a drain that hangs',
    from: 'ci',
    policy: 'WAIT',
    faults: { WEDGES: 1 },
    properties: ['L3'],
    broken: true,
  },
]

export function configurationsOf(scope: Scope): readonly Configuration[] {
  const reach = SCOPES.indexOf(scope)
  return [...SOUND, ...MUTANTS].filter(({ from }) => SCOPES.indexOf(from) <= reach)
}

/** The macros that make the model this configuration. */
export function definesOf({ policy, faults, defines = [] }: Configuration): readonly string[] {
  return [
    `POLICY=${policy}`,
    ...FAULTS.map((fault) => `${fault}=${faults[fault] ?? 0}`),
    ...defines,
  ]
}
