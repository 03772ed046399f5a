/** The state of a test cluster for people: what stands in an error when a condition does not come true. */
import type { PartitionRecord } from '../core/partition-record.ts'
import type { ClusterProcess } from './cluster-process.ts'
import type { TestCluster } from './test-cluster-types.ts'
import type { TestProcess } from './test-process.ts'

const EVENTS_SHOWN = 8

export function describeCluster(
  cluster: Omit<TestCluster, 'describe'>,
  processes: readonly ClusterProcess<object>[],
): string {
  const { clock, etcd } = cluster
  const owners = cluster.owners()
  return [
    `at ${seconds(clock.monotonicMs())}: etcd ${etcd.availability()} at revision ${etcd.revision()}`,
    `members: ${[...cluster.members().keys()].join(', ') || 'none'}`,
    ...owners.map((owner, partition) => describePartition(cluster, partition, owner)),
    ...processes.flatMap((process) => describeProcess(process)),
  ].join('\n')
}

function describePartition(
  cluster: Pick<TestCluster, 'record'>,
  partition: number,
  owner: string | null,
): string {
  const record = cluster.record(partition)
  if (record === null) return `partition ${partition}: never granted`
  return `partition ${partition}: ${describeRecord(record)}${owner === null ? ', no live owner' : ''}`
}

function describeRecord(record: PartitionRecord): string {
  const { phase, incarnation, generation } = record
  const owner = phase === 'vacant' ? '' : ` by ${record.owner.member}`
  const move = phase === 'revoking' ? `, to ${record.move.to ?? 'nobody'}` : ''
  return `${phase}${owner} at ${incarnation}.${generation}${move}`
}

function describeProcess(process: TestProcess): string[] {
  const { name, life, state, exitError, events } = process
  const why = exitError === null ? '' : ` (${exitError.message})`
  const told = events
    .filter(({ event }) => event.type !== 'session-proved' && event.type !== 'map-published')
    .slice(-EVENTS_SHOWN)
    .map(({ atMs, event: { type, ...rest } }) => `    ${seconds(atMs)} ${type} ${brief(rest)}`)
  return [`${name}, life ${life}: ${state}${why}`, ...told]
}

function brief(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .filter(([name]) => name !== 'group' && name !== 'member')
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ')
}

function seconds(atMs: number): string {
  return `${(atMs / 1000).toFixed(3)} s`
}
