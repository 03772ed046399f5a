/**
 * `npm run bench:large -- [--costs FILE]`: measures what a grant, a watcher, a delta cost here, or reads that
 * from FILE, and prints what groups of up to 1,000 members and 1,000,000 partitions would come to.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { measureCosts } from './measure-costs.ts'
import { type Costs, type Prediction, predict, type Shape } from './simulate.ts'

const T = { leaseTtlMs: 6000 } as const
const SHAPES: readonly Shape[] = [
  {
    name: '10 members, 10,000 partitions',
    members: 10,
    partitions: 10_000,
    groups: 1,
    followedOver: 'etcd',
    ...T,
  },
  {
    name: '64 members, 100,000 partitions',
    members: 64,
    partitions: 100_000,
    groups: 1,
    followedOver: 'etcd',
    ...T,
  },
  {
    name: '1,000 members, 1,000,000 partitions, one group',
    members: 1000,
    partitions: 1_000_000,
    groups: 1,
    followedOver: 'etcd',
    ...T,
  },
  {
    name: '… in 16 groups of 62 members, an etcd each',
    members: 1000,
    partitions: 1_000_000,
    groups: 16,
    followedOver: 'etcd',
    ...T,
  },
  {
    name: '… one group that follows over NATS',
    members: 1000,
    partitions: 1_000_000,
    groups: 1,
    followedOver: 'nats',
    ...T,
  },
  {
    name: '… 16 groups that follow over NATS',
    members: 1000,
    partitions: 1_000_000,
    groups: 16,
    followedOver: 'nats',
    ...T,
  },
]

const { values } = parseArgs({ options: { costs: { type: 'string' } } })
const costs = await costsOf(values.costs)
console.log(costTable(costs))
console.log(predictionTable(SHAPES.map((shape) => predict(shape, costs))))

/** From the file if it is there; else measured, and written to it if one is named. */
async function costsOf(file: string | undefined): Promise<Costs> {
  if (file !== undefined && existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Costs
  const measured = await measureCosts((text) => process.stderr.write(`${text}\n`))
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(measured, null, 2)}\n`)
  return measured
}

function costTable(costs: Costs): string {
  const lines = Object.entries(costs).map(([name, value]) => `| ${name} | ${number(value)} |`)
  return ['| cost | measured |', '| --- | ---: |', ...lines, ''].join('\n')
}

function predictionTable(all: readonly Prediction[]): string {
  const head = [
    "| group | cold start | grants/s | late requests | longest wait | one member lost | etcd events/s | NATS | a member's processor | its memory | snapshot |",
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
  ]
  const rows = all.map((one) =>
    [
      one.name,
      one.coldStartMs === null ? 'does not end' : seconds(one.coldStartMs),
      number(one.grantsPerSecond),
      `${number(one.timedOut * 100)} %`,
      seconds(one.longestWaitMs),
      seconds(one.takeOverMs),
      number(one.etcdEventsPerSecond),
      `${number(one.natsBytesPerSecond / 1e6)} MB/s`,
      `${number(one.memberProcessorShare * 100)} %`,
      `${number(one.memberBytes / 1e6)} MB`,
      `${number(one.snapshotBytes / 1e6)} MB`,
    ].join(' | '),
  )
  return [...head, ...rows.map((row) => `| ${row} |`)].join('\n')
}

function seconds(ms: number): string {
  return `${number(ms / 1000)} s`
}

/** Three significant figures. */
function number(value: number): string {
  const rounded = Number(value.toPrecision(3))
  return rounded.toLocaleString('en-US', { maximumFractionDigits: rounded < 10 ? 2 : 0 })
}
