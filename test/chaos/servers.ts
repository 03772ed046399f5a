/** etcd, NATS with JetStream and PostgreSQL of a run, in their namespaces. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startPostgresServer } from '../../src/dev/postgres-server.ts'
import { findServerProgram } from '../../src/dev/servers.ts'
import {
  ETCD_PEER_PORT,
  ETCD_PORT,
  type Layout,
  NATS_CLUSTER_PORT,
  NATS_PORT,
  type NodePlace,
  POSTGRES_PORT,
  placesOf,
} from './layout.ts'
import { within } from './network.ts'
import { createNode, type Node, startInside } from './nodes.ts'

export function etcdEndpoints(layout: Layout): readonly string[] {
  return placesOf(layout, 'etcd').map(({ address }) => `http://${address}:${ETCD_PORT}`)
}

export function natsServers(layout: Layout): readonly string[] {
  return placesOf(layout, 'nats').map(({ address }) => `nats://${address}:${NATS_PORT}`)
}

export function postgresUrl(layout: Layout): string {
  const [place] = placesOf(layout, 'postgres')
  return `postgres://postgres@${place?.address}:${POSTGRES_PORT}/postgres`
}

export async function startEtcdMember(
  folder: string,
  layout: Layout,
  place: NodePlace,
): Promise<Node> {
  const { name, namespace, address } = place
  const client = `http://${address}:${ETCD_PORT}`
  const peer = (one: NodePlace) => `http://${one.address}:${ETCD_PEER_PORT}`
  const members = placesOf(layout, 'etcd').map((one) => `${one.name}=${peer(one)}`)
  const process = await startInside(folder, {
    ...{ name, namespace, program: findServerProgram('etcd') },
    args: [
      ...['--name', name, '--data-dir', join(folder, name)],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer(place), '--initial-advertise-peer-urls', peer(place)],
      ...['--initial-cluster', members.join(','), '--initial-cluster-state', 'new'],
      // Compaction is a fault here, and the harness says when.
      ...['--logger', 'zap', '--log-level', 'warn'],
    ],
  })
  return createNode(place, process)
}

export async function startNatsMember(
  folder: string,
  layout: Layout,
  place: NodePlace,
): Promise<Node> {
  const { name, namespace, address } = place
  const route = (one: NodePlace) => `nats://${one.address}:${NATS_CLUSTER_PORT}`
  const routes = placesOf(layout, 'nats').filter((one) => one !== place)
  const process = await startInside(folder, {
    ...{ name, namespace, program: findServerProgram('nats-server') },
    args: [
      ...['-n', name, '-a', address, '-p', String(NATS_PORT)],
      ...['-js', '-sd', join(folder, name), '--cluster_name', 'chaos'],
      ...['--cluster', route(place), '--routes', routes.map(route).join(',')],
    ],
  })
  return createNode(place, process)
}

/** Stamps commits, which the evidence rests on. */
export async function startPostgres(folder: string, place: NodePlace): Promise<Node> {
  const directory = join(folder, place.name)
  mkdirSync(directory, { recursive: true })
  const hostRules = join(folder, 'pg_hba.conf')
  writeFileSync(hostRules, 'host all all all trust\nlocal all all trust\n', { mode: 0o644 })
  const server = await startPostgresServer({
    ...{ directory, port: POSTGRES_PORT, host: place.address, within: within(place.namespace) },
    extraArgs: [
      ...['-c', `hba_file=${hostRules}`, '-c', 'track_commit_timestamp=on'],
      ...['-c', 'max_connections=120', '-c', 'tcp_user_timeout=5000'],
      // A client whose host is gone keeps no lock for longer than this.
      ...['-c', 'tcp_keepalives_idle=2', '-c', 'tcp_keepalives_interval=1'],
      ...['-c', 'tcp_keepalives_count=3'],
    ],
  })
  return createNode(place, server)
}
