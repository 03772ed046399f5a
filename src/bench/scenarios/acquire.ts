/**
 * Acquire: a group that is new to etcd, ten members that join at once, until every partition is
 * serving. The processes are warm; the group is cold. A process that was started just now takes several
 * times as much processor time for it, until the engine has compiled what runs often: that first round is
 * told on its own, and the rounds that count come after some that don't, for Tenure as for the limit.
 *
 * The rate counts from the end of the settle delay, which is a setting and no cost: a quiet time after
 * the last join, so that the first member doesn't take everything. The whole time, with joining and that
 * delay, is told beside it.
 */
import type { BenchCase, BenchContext, Comparison, Figures, Scenario } from '../bench-types.ts'
import { clearGroup } from '../clear-group.ts'
import { LEAN_LIMIT, LIMIT, TENURE } from '../evaluate.ts'
import { firstCase } from '../first-case.ts'
import { findGrantLimit, type GrantLimit } from '../limit-grants.ts'
import { joinFleet } from '../member-fleet.ts'

/** And how many rounds. */
const CASES = [
  { partitions: 1000, quick: 3, full: 10 },
  { partitions: 10_000, quick: 5, full: 10 },
  { partitions: 100_000, quick: 1, full: 3 },
]
const MEMBERS = 10
const SETTLE_MS = 500
/** Cold starts get faster until about the 27th, when the engine has compiled all that runs often. */
const WARM_UP = { partitions: 10_000, rounds: 30 }
/**
 * What has rested for so long since is warmed up again: rivals' turns last minutes, and the first cold start
 * after a minute's rest took up to two and a half times the processor time of the third.
 */
const REST_MS = 10_000
const AGAIN_ROUNDS = 5
/** Long: no session is to be lost here, however slow the machine. */
const LEASE_TTL_MS = 30_000
/** Below this a machine is too busy to judge by. */
const LIMIT_MIN = 19_000

/** As the limit is: with fewer partitions, joining and the first commit weigh more than grants do. */
const JUDGED = { metric: 'partitions per second', judgedIn: 'P = 10000' }

export const acquire: Scenario = {
  name: 'acquire',
  title: `cold start with ${MEMBERS} members`,
  rivalTargets: {
    'etcd3 Election': { ...JUDGED, target: { atLeast: 30 } },
    'Go concurrency.Election': { ...JUDGED, target: { atLeast: 15 } },
  },
  async *cases(context) {
    const partitions = warmUpPartitions(context)
    yield firstCase(context, {
      ...{ scenario: 'acquire', name: `P = ${partitions}, processes just started` },
      warmUpRounds: WARM_UP.rounds,
      measure: (round) => measureTenure(context, partitions, round),
    })
    // In warm processes: what was fastest in cold ones need not be later on.
    context.progress('acquire: looking for the limit')
    const limit = await findGrantLimit(context, MEMBERS, 'stub')
    const leanLimit = await findGrantLimit(context, MEMBERS, 'lean')
    for (const { partitions, quick, full } of CASES) {
      if (partitions > context.partitionsMax) continue
      yield caseOf(context, { limit, leanLimit }, partitions, context.quick ? quick : full)
    }
  },
}

function caseOf(
  context: BenchContext,
  limits: { readonly limit: GrantLimit; readonly leanLimit: GrantLimit },
  partitions: number,
  rounds: number,
): BenchCase {
  const limitOf = (name: string, limit: GrantLimit) => ({
    name,
    measure: afterRest(
      () => measureLimit(limit, partitions),
      () => measureLimit(limit, warmUpPartitions(context)),
    ),
  })
  const rate: Comparison = {
    metric: 'partitions per second',
    statistic: 'median',
    against: LIMIT,
    target: `P = ${partitions}` === JUDGED.judgedIn ? { atLeast: 0.6 } : null,
    voidBelow: LIMIT_MIN,
  }
  return {
    name: `P = ${partitions}`,
    rounds,
    contenders: [
      {
        name: TENURE,
        measure: afterRest(
          (round) => measureTenure(context, partitions, round),
          (turn) => measureTenure(context, warmUpPartitions(context), `${partitions}-${turn}`),
        ),
      },
      limitOf(LIMIT, limits.limit),
      limitOf(LEAN_LIMIT, limits.leanLimit),
    ],
    comparisons: [rate, { ...rate, against: LEAN_LIMIT, target: null }],
    rivalSettings: {
      caseName: `P = ${partitions}`,
      ...{ partitions, members: MEMBERS, leaseTtlMs: LEASE_TTL_MS, itemMs: 0 },
    },
  }
}

/** Rounds for nothing come before the first that follows a rest. */
function afterRest(
  measure: (round: number) => Promise<Figures>,
  warmUp: (turn: string) => Promise<unknown>,
): (round: number) => Promise<Figures> {
  let endedMs = Number.NEGATIVE_INFINITY
  return async (round) => {
    if (performance.now() - endedMs > REST_MS) {
      for (let turn = 0; turn < AGAIN_ROUNDS; turn += 1) await warmUp(`again-${round}-${turn}`)
    }
    const figures = await measure(round)
    endedMs = performance.now()
    return figures
  }
}

function warmUpPartitions({ partitionsMax }: BenchContext): number {
  return Math.min(WARM_UP.partitions, partitionsMax)
}

async function measureLimit(limit: GrantLimit, partitions: number): Promise<Figures> {
  const value = await limit.measure(partitions)
  const note = limit.describe()
  return [{ metric: 'partitions per second', unit: '1/s', values: [value], note }]
}

async function measureTenure(
  context: BenchContext,
  partitions: number,
  round: number | string,
): Promise<Figures> {
  const group = `${context.runId}-acquire-${partitions}-${round}`
  const fleet = await joinFleet(context, {
    ...{ group, members: MEMBERS, itemMs: null },
    settings: { partitions, leaseTtlMs: LEASE_TTL_MS, settle: { firstGrantMs: SETTLE_MS } },
  })
  await fleet.allServing()
  const notes = await fleet.notes(false)
  const joinedMs = Math.max(...notes.map((note) => note.sessionOpenedMs))
  const settledMs = joinedMs + SETTLE_MS
  const endedMs = Math.max(...notes.map((note) => note.lastServingMs))
  const shares = fleet.processes.map((one) => one.held().serving)
  await fleet.leave()
  await clearGroup(context, group)
  return [
    {
      metric: 'partitions per second',
      unit: '1/s',
      values: [(partitions / (endedMs - settledMs)) * 1000],
      note: `from the end of the settle delay of ${SETTLE_MS} ms on`,
    },
    { metric: 'whole cold start', unit: 'ms', values: [endedMs - fleet.joinedAtMs] },
    { metric: 'joining', unit: 'ms', values: [joinedMs - fleet.joinedAtMs] },
    {
      metric: 'largest share over the mean',
      unit: '',
      values: [(Math.max(...shares) * MEMBERS) / partitions],
    },
  ]
}
