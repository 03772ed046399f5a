/** Who takes part, at which addresses, and with which settings. */
import type { GroupSettings } from '../../src/core/group-config.ts'

export const GROUP = 'chaos'
export const PREFIX = 'orders'
export const TTL_MS = 4000
export const MARGIN_MS = 800
export const DRAIN_DEADLINE_MS = 3000
export const SETTINGS = {
  partitions: 64,
  leaseTtlMs: TTL_MS,
  marginMs: MARGIN_MS,
  fenced: true,
  drain: { deadlineMs: DRAIN_DEADLINE_MS, policy: 'fence' },
  acquire: { deadlineMs: 10_000 },
  settle: { firstGrantMs: 1500, balanceMs: 500 },
} as const satisfies GroupSettings

export type NodeKind = 'etcd' | 'nats' | 'postgres' | 'serve' | 'worker'

/** A machine of its own, as far as the network goes. */
export type NodePlace = {
  readonly name: string
  readonly kind: NodeKind
  readonly address: string
  /** Name of its network namespace. */
  readonly namespace: string
}

export type Layout = {
  /** Where the bridge is, and the harness with the producer. */
  readonly hub: { readonly address: string; readonly namespace: string }
  readonly nodes: readonly NodePlace[]
}

export const ETCD_PORT = 2379
export const ETCD_PEER_PORT = 2380
export const NATS_PORT = 4222
export const NATS_CLUSTER_PORT = 6222
export const POSTGRES_PORT = 5432
export const HTTP_PORT = 7300
/** Whoever listens beyond loopback takes changes only with a token. */
export const HTTP_TOKEN = 'chaos'

/** Nothing leaves the bridge's namespace, so the range collides with none of the machine's. */
const NETWORK = '10.213.0'
const COUNTS: readonly (readonly [NodeKind, number, number])[] = [
  ['etcd', 3, 10],
  ['nats', 3, 20],
  ['postgres', 1, 30],
  ['serve', 2, 40],
  ['worker', 6, 50],
]
const SHORT: Readonly<Record<NodeKind, string>> = {
  etcd: 'etcd',
  nats: 'nats',
  postgres: 'pg',
  serve: 'serve',
  worker: 'w',
}

/** @param prefix of the namespaces' names, unique on the machine */
export function createLayout(prefix: string): Layout {
  return {
    hub: { address: `${NETWORK}.1`, namespace: `${prefix}hub` },
    nodes: COUNTS.flatMap(([kind, count, base]) =>
      Array.from({ length: count }, (_, index): NodePlace => {
        const name = `${SHORT[kind]}-${index + 1}`
        const address = `${NETWORK}.${base + index + 1}`
        return { name, kind, address, namespace: `${prefix}${name}` }
      }),
    ),
  }
}

export function placesOf(layout: Layout, kind: NodeKind): readonly NodePlace[] {
  return layout.nodes.filter((node) => node.kind === kind)
}
