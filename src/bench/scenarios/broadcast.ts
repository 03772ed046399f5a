/**
 * Broadcast: from the publisher's mirror having a commit to its being applied at 1, 16 and 256 followers,
 * beside a raw NATS publish of as many bytes to as many subscriptions in the same processes. One change,
 * and P/N changes at once, as a leaving member makes them. How long the commit itself takes before that
 * is etcd's, and told beside it. Sizes of snapshots are of the answer as it travels.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { DEFAULT_KEY_PREFIX } from '../../core/keys.ts'
import type { BenchProcess } from '../bench-processes.ts'
import type { BenchCase, BenchContext, Figures, Scenario } from '../bench-types.ts'
import { clearGroup } from '../clear-group.ts'
import { LIMIT, TENURE } from '../evaluate.ts'
import type { Applied, MapCommits } from '../map-process.ts'
import type { RawArrivals } from '../raw-nats.ts'

const MEMBERS = 10
const PARTITIONS = 10_000
const FOLLOWERS = [1, 16, 256]
const FOLLOWER_PROCESSES = 2
const GAP_MS = 10
/** Publisher and followers have run no such code before. */
const WARM_UP_ROUNDS = 3
const REACHED_TIMEOUT_MS = 30_000
const SNAPSHOTS = [
  { partitions: 10_000, atMostBytes: 25 * 1024 },
  { partitions: 100_000, atMostBytes: 256 * 1024 },
]

/** Beside the limit, whose publisher hears of nothing and whose subscribers do not look at what they get. */
const READERS = 'raw watch, raw NATS, read'

type Setting = {
  readonly followers: number
  readonly changed: number
  readonly messages: number
  readonly rounds: number
}

export const broadcast: Scenario = {
  name: 'broadcast',
  title: 'a change of the map on its way to all who follow it',
  async *cases(context) {
    const partitions = Math.min(PARTITIONS, context.partitionsMax)
    const rounds = context.quick ? 3 : 10
    const messages = context.quick ? 40 : 100
    for (const followers of FOLLOWERS) {
      for (const changed of [1, Math.floor(partitions / MEMBERS)]) {
        yield await openCase(context, partitions, { followers, changed, messages, rounds })
      }
    }
    for (const snapshot of SNAPSHOTS) {
      if (snapshot.partitions <= context.partitionsMax) yield await snapshotCase(context, snapshot)
    }
  },
}

async function openCase(
  context: BenchContext,
  partitions: number,
  setting: Setting,
): Promise<BenchCase> {
  const { followers, changed, messages, rounds } = setting
  const group = `${context.runId}-map-${followers}-${changed}`
  context.progress(`broadcast: ${followers} followers`)
  const [source, ...rest] = await context.processes.take(1 + FOLLOWER_PROCESSES)
  const using = rest.slice(0, Math.min(followers, FOLLOWER_PROCESSES))
  const { etcd, nats } = context.servers
  const group_ = { group, keyPrefix: DEFAULT_KEY_PREFIX, etcd, nats, partitions, members: MEMBERS }
  const first = source as BenchProcess
  await first.call('mapOpen', group_)
  const count = followers / using.length
  const subject = `${group}.raw`
  await Promise.all(using.map((one) => one.call('mapFollow', { group, nats, count })))
  await first.call('natsOpen', { nats })
  await Promise.all(using.map((one) => one.call('natsSubscribe', { nats, subject, count })))
  let bytes = 0
  const tenure = async (): Promise<Figures> => {
    const told = await first.call('mapCommit', { commits: messages, changed, gapMs: GAP_MS })
    bytes = told.deltaBytes
    return figuresOf(told, await takenBy(using, told.commits.at(-1)?.revision ?? 0))
  }
  const limit = async (): Promise<Figures> => {
    const sizes = Array.from({ length: messages }, () => Math.round(bytes))
    const sentMs = await first.call('natsPublish', { subject, sizes, gapMs: GAP_MS })
    return arrivalsOf(sentMs, await all(using, 'natsArrived'))
  }
  const readers = async (): Promise<Figures> => {
    await Promise.all(using.map((one) => one.call('natsForget', null)))
    const sentMs = await first.call('natsRepublish', { subject, changed, gapMs: GAP_MS })
    await allRead(using, sentMs.length)
    return arrivalsOf(sentMs, await all(using, 'natsRead'))
  }
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) await tenure()
  return {
    name: `${followers} followers, ${changed} changed`,
    rounds,
    contenders: [
      { name: TENURE, measure: tenure },
      { name: LIMIT, measure: limit },
      // Repeats the deltas of Tenure's last turn.
      { name: READERS, measure: readers },
    ],
    comparisons: [
      {
        ...{ metric: 'applied', statistic: 'p99', against: LIMIT, target: { atMost: 3 } },
        bound: {
          contender: READERS,
          why:
            'the same deltas by raw NATS, each sent when a raw watch tells of as large a commit, to ' +
            'subscribers that inflate and parse them and keep nothing',
        },
      },
      { metric: 'applied', statistic: 'p50', against: LIMIT, target: null },
    ],
    rivalSettings: null,
    async close() {
      await Promise.all(using.map((one) => one.call('mapUnfollow', null)))
      await first.call('mapClose', null)
      await clearGroup(context, group)
    },
  }
}

async function all(
  using: readonly BenchProcess[],
  what: 'natsArrived' | 'natsRead',
): Promise<RawArrivals> {
  return (await Promise.all(using.map((one) => one.call(what, null)))).flat()
}

/** Those who read fall behind where there are many: their last message counts as well. */
async function allRead(using: readonly BenchProcess[], messages: number): Promise<void> {
  const untilMs = performance.now() + REACHED_TIMEOUT_MS
  const isMissing = (arrivals: readonly number[]) => arrivals[messages - 1] === undefined
  while ((await all(using, 'natsRead')).some(isMissing)) {
    if (performance.now() > untilMs) throw new Error('a subscriber did not read the last message')
    await delay(GAP_MS)
  }
}

function arrivalsOf(sentMs: readonly number[], all: RawArrivals): Figures {
  const values = all.flatMap((arrivals) =>
    arrivals.map((atMs, message) => atMs - (sentMs[message] ?? 0)),
  )
  return [{ metric: 'applied', unit: 'ms', values }]
}

function figuresOf({ commits, deltaBytes }: MapCommits, all: readonly Applied[]): Figures {
  const applied: number[] = []
  const sinceSent: number[] = []
  for (const changes of all) {
    for (const { revision, sentMs, mirroredMs } of commits) {
      const change = changes.find((one) => one.revision >= revision)
      if (change === undefined) continue
      applied.push(change.atMs - mirroredMs)
      sinceSent.push(change.atMs - sentMs)
    }
  }
  return [
    { metric: 'applied', unit: 'ms', values: applied },
    { metric: 'commit sent to applied', unit: 'ms', values: sinceSent },
    { metric: 'bytes per delta', unit: 'B', values: [deltaBytes] },
  ]
}

async function takenBy(
  using: readonly BenchProcess[],
  revision: number,
): Promise<readonly Applied[]> {
  const untilMs = performance.now() + REACHED_TIMEOUT_MS
  for (const one of using) {
    while ((await one.call('mapReached', null)) < revision) {
      if (performance.now() > untilMs) throw new Error('a follower did not reach the last change')
      await delay(GAP_MS)
    }
  }
  return (await Promise.all(using.map((one) => one.call('mapTaken', null)))).flat()
}

async function snapshotCase(
  context: BenchContext,
  { partitions, atMostBytes }: { readonly partitions: number; readonly atMostBytes: number },
): Promise<BenchCase> {
  const group = `${context.runId}-snapshot-${partitions}`
  const { etcd, nats } = context.servers
  context.progress(`broadcast: a map of ${partitions} partitions`)
  const [source] = (await context.processes.take(1)) as [BenchProcess]
  const sizes = { partitions, members: MEMBERS }
  await source.call('mapOpen', { group, keyPrefix: DEFAULT_KEY_PREFIX, etcd, nats, ...sizes })
  return {
    name: `snapshot of ${partitions}`,
    rounds: 1,
    contenders: [
      {
        name: TENURE,
        measure: async () => [
          { metric: 'bytes', unit: 'B', values: [await source.call('mapSnapshot', null)] },
        ],
      },
    ],
    comparisons: [
      {
        ...{ metric: 'bytes', statistic: 'median', against: null },
        target: { atMost: atMostBytes },
      },
    ],
    rivalSettings: null,
    async close() {
      await source.call('mapClose', null)
      await clearGroup(context, group)
    },
  }
}
