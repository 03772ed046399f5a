/**
 * The settings of a group: one record, created by the first worker or operator, changed by
 * compare-and-set. Partitions, TTL and fenced are the group's identity: who comes with others is told
 * both values. Everything in milliseconds unless named otherwise.
 */
import { PARTITIONS_MAX } from './keys.ts'
import { isObject, readVersion } from './record-format.ts'
import { createTenureError } from './tenure-error.ts'

/** What follows a drain that overran its deadline. */
export type DrainPolicy = 'wait' | 'fence' | 'evict'

export type GroupConfig = {
  /** P, 1 .. 1,000,000. */
  readonly partitions: number
  /** T, the lease TTL of each session; whole seconds, as etcd counts them; at least 2 s. */
  readonly leaseTtlMs: number
  /** Subtracted from every deadline for clock rate and scheduling. */
  readonly marginMs: number
  /** The protected resources refuse older tokens, so a move may be forced. */
  readonly fenced: boolean
  readonly drain: { readonly deadlineMs: number; readonly policy: DrainPolicy }
  readonly acquire: { readonly deadlineMs: number }
  readonly settle: {
    /** Quiet time after the last join before never-owned partitions are granted. */
    readonly firstGrantMs: number
    /** Quiet time after a membership change before balancing. */
    readonly balanceMs: number
  }
  /** How long elections wait for the previous owner's name; 0: not at all. */
  readonly restartGraceMs: number
  readonly budget: ChurnBudget
}

export type ChurnBudget = {
  readonly movesInFlight: number
  readonly movesInFlightPerMember: number
  /** 0: no limit. */
  readonly movesPerMinute: number
}

export const DEFAULT_GROUP_CONFIG: GroupConfig = {
  partitions: 64,
  leaseTtlMs: 6000,
  marginMs: 1000,
  fenced: false,
  drain: { deadlineMs: 30_000, policy: 'wait' },
  acquire: { deadlineMs: 30_000 },
  settle: { firstGrantMs: 500, balanceMs: 1000 },
  restartGraceMs: 0,
  budget: budgetOf(64),
}

/**
 * One partition in 32 may move at once: 3 % of the work is all that a rebalance holds up at any moment,
 * which leaves the rest of a tenth to what the processes that join cost. Small groups move more at once,
 * so that slow drains don't wait for each other.
 */
export function budgetOf(partitions: number): ChurnBudget {
  const movesInFlight = Math.max(16, Math.ceil(partitions / 32))
  return { movesInFlight, movesInFlightPerMember: Math.ceil(movesInFlight / 2), movesPerMinute: 0 }
}

/** Settings as a caller gives them: any part, the rest from the group or the defaults. */
export type GroupSettings = {
  readonly [Name in keyof GroupConfig]?:
    | (GroupConfig[Name] extends object ? Partial<GroupConfig[Name]> : GroupConfig[Name])
    | undefined
}

/** A full config for a new group. The drain policy of a fenced group defaults to `fence`. */
export function newGroupConfig(settings: GroupSettings): GroupConfig {
  const base = DEFAULT_GROUP_CONFIG
  const fenced = settings.fenced ?? base.fenced
  const partitions = settings.partitions ?? base.partitions
  return checkGroupConfig({
    partitions,
    leaseTtlMs: settings.leaseTtlMs ?? base.leaseTtlMs,
    marginMs: settings.marginMs ?? base.marginMs,
    fenced,
    drain: {
      ...base.drain,
      policy: fenced ? 'fence' : 'wait',
      ...settings.drain,
    },
    acquire: { ...base.acquire, ...settings.acquire },
    settle: { ...base.settle, ...settings.settle },
    restartGraceMs: settings.restartGraceMs ?? base.restartGraceMs,
    budget: { ...budgetOf(partitions), ...settings.budget },
  })
}

/** @throws TenureError `config-mismatch` naming the first setting of the group's identity that differs. */
export function assertSameGroup(settings: GroupSettings, stands: GroupConfig): void {
  for (const name of ['partitions', 'leaseTtlMs', 'fenced'] as const) {
    const asked = settings[name]
    if (asked === undefined || asked === stands[name]) continue
    throw createTenureError(
      'config-mismatch',
      `this process asks for ${name} ${asked}, the group has ${stands[name]}: use the group's value or another group`,
      { details: { setting: name, asked, stands: stands[name] } },
    )
  }
}

/** @throws TenureError `invalid-config` naming the setting and its range. */
export function checkGroupConfig(config: GroupConfig): GroupConfig {
  const { partitions, leaseTtlMs, marginMs, drain, budget } = config
  demand(isCount(partitions, 1, PARTITIONS_MAX), 'partitions', `1 to ${PARTITIONS_MAX}`)
  demand(
    isCount(leaseTtlMs, 2000, 3_600_000) && leaseTtlMs % 1000 === 0,
    'leaseTtlMs',
    'whole seconds, 2000 to 3600000',
  )
  demand(isCount(marginMs, 50, leaseTtlMs / 3), 'marginMs', '50 to a third of leaseTtlMs')
  demand(['wait', 'fence', 'evict'].includes(drain.policy), 'drain.policy', 'wait, fence or evict')
  demand(
    config.fenced || drain.policy !== 'fence',
    'drain.policy',
    'wait or evict in a group that is not fenced',
  )
  demand(isCount(drain.deadlineMs, 1), 'drain.deadlineMs', 'at least 1')
  demand(isCount(config.acquire.deadlineMs, 1), 'acquire.deadlineMs', 'at least 1')
  demand(isCount(config.settle.firstGrantMs, 0), 'settle.firstGrantMs', 'at least 0')
  demand(isCount(config.settle.balanceMs, 0), 'settle.balanceMs', 'at least 0')
  demand(isCount(config.restartGraceMs, 0), 'restartGraceMs', 'at least 0')
  demand(isCount(budget.movesInFlight, 1), 'budget.movesInFlight', 'at least 1')
  demand(isCount(budget.movesInFlightPerMember, 1), 'budget.movesInFlightPerMember', 'at least 1')
  demand(isCount(budget.movesPerMinute, 0), 'budget.movesPerMinute', 'at least 0')
  return config
}

export function encodeGroupConfig(config: GroupConfig): string {
  return JSON.stringify({ v: 1, ...config })
}

/** @throws TenureError `record-malformed`, `record-version-unknown` or `invalid-config`. */
export function decodeGroupConfig(text: string): GroupConfig {
  const { v: _, ...value } = readVersion(text, 'group config')
  if (!isObject(value['drain']) || !isObject(value['budget']) || !isObject(value['settle'])) {
    throw createTenureError('record-malformed', 'group config lacks drain, budget or settle')
  }
  return checkGroupConfig(value as unknown as GroupConfig)
}

function isCount(value: unknown, from: number, to = Number.MAX_SAFE_INTEGER): boolean {
  return Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to
}

function demand(holds: boolean, setting: string, range: string): void {
  if (holds) return
  throw createTenureError('invalid-config', `${setting} must be ${range}`, {
    details: { setting },
  })
}
