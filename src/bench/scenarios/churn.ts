/**
 * Churn: planned moves under load. Every partition has an item in flight all the time; half of the
 * sixteen members are drained, and then everything is balanced back: each a wave of P/2 moves through
 * the rebalancer of a `tenure serve`.
 *
 * The pause of a move is counted from the end of the last item at the old owner to the first admitted
 * at the new one, so the items' own time is left out. Moves per second count from the first revoke that
 * an owner sees to the last partition served. The churn budget allows all moves at once here: it is a
 * setting, and not what is measured. As with acquire, the processes are warm: `tenure serve` has just been
 * started, and the first round, which is told on its own, has much that the engine still compiles.
 */
import type { BenchCase, BenchContext, Figures, Scenario } from '../bench-types.ts'
import { clearGroup } from '../clear-group.ts'
import { LEAN_LIMIT, LIMIT, TENURE } from '../evaluate.ts'
import { firstCase } from '../first-case.ts'
import {
  loadStands,
  type MovesLimit,
  type MovesWave,
  openMovesLimit,
  TRIAL_WAVES,
  waveOf,
} from '../limit-moves.ts'
import { type Fleet, joinFleet } from '../member-fleet.ts'
import { memberOf } from '../member-names.ts'
import { type ServeProcess, startServeProcess } from '../serve-process.ts'

/** Items of a length that leaves the machine most of its time; and how many rounds, some of them for nothing. */
const CASES = [
  { partitions: 1024, itemMs: 100, warmUp: 8, quick: 3, full: 10 },
  { partitions: 10_000, itemMs: 500, warmUp: 4, quick: 2, full: 6 },
] as const
const MEMBERS = 16
const LEASE_TTL_MS = 30_000
const WAVES_PER_ROUND = 2
const WAVE_TIMEOUT_MS = 180_000

export const churn: Scenario = {
  name: 'churn',
  title: `planned moves between ${MEMBERS} members under load`,
  async *cases(context) {
    for (const size of CASES) {
      if (size.partitions <= context.partitionsMax) yield* casesOf(context, size)
    }
  },
}

async function* casesOf(
  context: BenchContext,
  { partitions, itemMs, warmUp, quick, full }: (typeof CASES)[number],
): AsyncGenerator<BenchCase> {
  const rounds = context.quick ? quick : full
  const waves = rounds * WAVES_PER_ROUND + TRIAL_WAVES
  const say = (what: string) => context.progress(`churn: ${partitions} partitions, ${what}`)
  say('first grants of the limits')
  const options = { partitions, members: MEMBERS, itemMs, waves }
  const limit = await openMovesLimit(context, { ...options, wire: 'stub' })
  const leanLimit = await openMovesLimit(context, { ...options, wire: 'lean' })
  say('members join')
  const tenure = await openTenure(context, partitions, itemMs)
  say('the limits warm up')
  await limit.warmUp()
  await leanLimit.warmUp()
  yield firstCase(context, {
    ...{ scenario: 'churn', name: `${partitions} × ${MEMBERS}, the first`, warmUpRounds: warmUp },
    measure: tenure.measure,
  })
  yield {
    name: `${partitions} × ${MEMBERS}`,
    rounds,
    contenders: [
      { name: TENURE, measure: tenure.measure },
      { name: LIMIT, measure: () => measureLimit(limit) },
      { name: LEAN_LIMIT, measure: () => measureLimit(leanLimit) },
    ],
    comparisons: [
      {
        ...{ metric: 'moves per second', statistic: 'median', against: LIMIT },
        target: { atLeast: 0.5 },
      },
      { metric: 'moves per second', statistic: 'median', against: LEAN_LIMIT, target: null },
      { metric: 'pause', statistic: 'p50', against: LIMIT, target: { atMost: 2 } },
      { metric: 'pause', statistic: 'p99', against: LIMIT, target: { atMost: 6 } },
      { metric: 'pause', statistic: 'max', against: LIMIT, target: null },
    ],
    rivalSettings: {
      caseName: `${partitions} × ${MEMBERS}`,
      ...{ partitions, members: MEMBERS, leaseTtlMs: LEASE_TTL_MS, itemMs },
    },
    async close() {
      await tenure.close()
      await limit.end()
      await leanLimit.end()
    },
  }
}

/** Both waves of a round count, as Tenure's do. */
async function measureLimit(limit: MovesLimit): Promise<Figures> {
  const [out, back] = [await limit.wave(), await limit.wave()]
  return [
    {
      metric: 'moves per second',
      unit: '1/s',
      values: [rateOf(out, back)],
      note: limit.describe(),
    },
    { metric: 'pause', unit: 'ms', values: [...out.pausesMs, ...back.pausesMs] },
  ]
}

function rateOf(out: MovesWave, back: MovesWave): number {
  return (out.movesPerSecond + back.movesPerSecond) / WAVES_PER_ROUND
}

async function openTenure(context: BenchContext, partitions: number, itemMs: number) {
  const group = `${context.runId}-churn-${partitions}`
  const fleet = await joinFleet(context, {
    ...{ group, members: MEMBERS, itemMs },
    settings: {
      ...{ partitions, leaseTtlMs: LEASE_TTL_MS },
      budget: { movesInFlight: partitions, movesInFlightPerMember: partitions },
    },
  })
  await fleet.allServing()
  const serve = await startServeProcess(context, group)
  await load(fleet, false)
  return {
    async measure(): Promise<Figures> {
      await load(fleet, true)
      const out = await wave(context, fleet, 'drain', () => drainHalf(serve))
      const back = await wave(context, fleet, 'balance', () => balanceBack(serve))
      await load(fleet, false)
      const moved = [...out.pausesMs, ...back.pausesMs]
      return [
        { metric: 'moves per second', unit: '1/s', values: [rateOf(out, back)] },
        { metric: 'moves per second, drain', unit: '1/s', values: [out.movesPerSecond] },
        { metric: 'moves per second, balance', unit: '1/s', values: [back.movesPerSecond] },
        { metric: 'pause', unit: 'ms', values: moved },
        { metric: 'moves measured', unit: '', values: [moved.length] },
      ]
    },
    async close() {
      await serve.stop()
      await fleet.leave()
      await clearGroup(context, group)
    },
  }

  async function wave(
    { processes }: BenchContext,
    { processes: all, serving, notes }: Fleet,
    kind: 'drain' | 'balance',
    begin: () => Promise<void>,
  ) {
    const givers = all.slice(0, MEMBERS / 2)
    const share = Math.floor(partitions / MEMBERS)
    await notes(true)
    await begin()
    const isOver = () => {
      if (serving() !== partitions) return false
      if (kind === 'drain') return serving(givers) === 0
      return all.every((one) => one.held().serving >= share)
    }
    await processes.until(`churn: ${kind}`, isOver, WAVE_TIMEOUT_MS)
    return waveOf(await notes(true))
  }
}

async function load(fleet: Fleet, on: boolean): Promise<void> {
  await Promise.all(fleet.processes.map((one) => one.call('load', { on })))
  await loadStands(fleet.processes)
}

async function drainHalf(serve: ServeProcess): Promise<void> {
  const givers = Array.from({ length: MEMBERS / 2 }, (_, index) => memberOf(index))
  // All cordons first, or what one gives away would go to the next that is to be drained.
  for (const member of givers) await serve.call('PUT', `/members/${member}/cordon`, {})
  await Promise.all(givers.map((member) => serve.call('POST', `/members/${member}/drain`, {})))
}

async function balanceBack(serve: ServeProcess): Promise<void> {
  for (let index = 0; index < MEMBERS / 2; index += 1) {
    await serve.call('DELETE', `/members/${memberOf(index)}/cordon`)
  }
  await serve.call('POST', '/rebalances', { kind: { type: 'balance' } })
}
