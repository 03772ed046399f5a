/**
 * Rolling restart: sixteen members under load end and come back one by one, with a rebalancer. A move is
 * a grant to another member than the one before; each restart waits until all is served and balanced.
 */
import { DEFAULT_KEY_PREFIX } from '../../core/keys.ts'
import type { BenchProcess } from '../bench-processes.ts'
import type { BenchCase, BenchContext, Figures, Scenario } from '../bench-types.ts'
import { clearGroup } from '../clear-group.ts'
import { TENURE } from '../evaluate.ts'
import { type Fleet, joinFleet } from '../member-fleet.ts'
import { OwnerTrail } from '../owner-trail.ts'
import { startServeProcess } from '../serve-process.ts'

const MEMBERS = 16
const PARTITIONS = 1024
const ITEM_MS = 100
const LEASE_TTL_MS = 30_000
const GRACE_MS = 60_000
const RESTART_TIMEOUT_MS = 120_000

export const rolling: Scenario = {
  name: 'rolling',
  title: `${MEMBERS} members restarted one by one`,
  async *cases(context) {
    for (const graceMs of [0, GRACE_MS]) yield await openCase(context, graceMs)
  },
}

async function openCase(context: BenchContext, restartGraceMs: number): Promise<BenchCase> {
  const group = `${context.runId}-rolling-${restartGraceMs}`
  const partitions = Math.min(PARTITIONS, context.partitionsMax)
  const settings = { partitions, leaseTtlMs: LEASE_TTL_MS, restartGraceMs }
  const fleet = await joinFleet(context, { group, members: MEMBERS, settings, itemMs: ITEM_MS })
  await fleet.allServing()
  const serve = await startServeProcess(context, group)
  const trail = new OwnerTrail()
  trail.follow(await fleet.notes(true))
  const restarts = context.quick ? 4 : MEMBERS
  return {
    name: restartGraceMs === 0 ? 'no restart grace' : 'with restart grace',
    rounds: 1,
    contenders: [
      {
        name: TENURE,
        measure: () => measure(context, fleet, trail, { group, settings, restarts }),
      },
    ],
    comparisons: [
      {
        metric: 'moves of one partition at one restart',
        ...{ statistic: 'max', against: null },
        target: { atMost: restartGraceMs === 0 ? 1 : 0 },
      },
      { metric: 'a restart, until all is balanced', statistic: 'p50', against: null, target: null },
    ],
    rivalSettings: {
      caseName: 'rolling',
      ...{ partitions, members: MEMBERS, leaseTtlMs: LEASE_TTL_MS, itemMs: ITEM_MS },
    },
    async close() {
      await serve.stop()
      await fleet.leave()
      await clearGroup(context, group)
    },
  }
}

async function measure(
  { processes, servers }: BenchContext,
  fleet: Fleet,
  trail: OwnerTrail,
  options: {
    readonly group: string
    readonly settings: { readonly partitions: number }
    readonly restarts: number
  },
): Promise<Figures> {
  const { group, settings, restarts } = options
  const { partitions } = settings
  const share = Math.floor(partitions / MEMBERS)
  const moves: number[] = []
  const perPartition: number[] = []
  const tookMs: number[] = []
  for (let restart = 0; restart < restarts; restart += 1) {
    const one = fleet.processes[restart] as BenchProcess
    const members = fleet.members[restart] ?? []
    const beganMs = performance.now()
    await one.call('leave', { members, force: false })
    const common = { group, keyPrefix: DEFAULT_KEY_PREFIX, settings, itemMs: ITEM_MS }
    await one.call('join', { ...common, etcd: servers.etcd, nats: servers.nats, members })
    await processes.until(
      'balanced after a restart',
      () =>
        fleet.serving() === partitions &&
        fleet.processes.every((each) => each.held().serving >= share),
      RESTART_TIMEOUT_MS,
    )
    tookMs.push(performance.now() - beganMs)
    const moved = trail.follow(await fleet.notes(true))
    moves.push([...moved.values()].reduce((sum, count) => sum + count, 0))
    perPartition.push(Math.max(0, ...moved.values()))
  }
  return [
    { metric: 'moves of one partition at one restart', unit: '', values: perPartition },
    { metric: 'moves per restart', unit: '', values: moves, note: `a share is ${share}` },
    { metric: 'a restart, until all is balanced', unit: 'ms', values: tookMs },
  ]
}
