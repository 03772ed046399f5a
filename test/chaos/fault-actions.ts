/**
 * What each kind of fault does, from its beginning until it is healed. An action returns when the fault is
 * over; whatever happens meanwhile, what it took away is given back.
 */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Cluster } from './cluster.ts'
import { compact, defragment } from './etcd-calls.ts'
import type { DealtFault, FaultKind } from './fault-kinds.ts'
import { type NodeKind, type NodePlace, placesOf } from './layout.ts'
import { systemEnvironment, within } from './network.ts'
import type { Node } from './nodes.ts'
import type { Operators } from './operators.ts'

export type FaultContext = {
  readonly cluster: Cluster
  readonly operators: Operators
  /** What is older, the harness has seen. */
  readonly passedRevision: () => number
  /** Ends every fault early. */
  readonly signal: AbortSignal
}

type Direction = 'in' | 'out' | 'both'

const SLOW_MS = { least: 80, range: 600 }
/** Forward and back, small and large. */
const CLOCK_JUMPS_S = [3600, -3600, 40, -40, 86_400]

const run = promisify(execFile)

/** @param targets at least one; two for a loss of quorum */
export async function actOut(
  context: FaultContext,
  fault: DealtFault,
  targets: readonly Node[],
): Promise<void> {
  const { cluster } = context
  const [target] = targets
  if (target === undefined) return
  const wait = () => pause(fault.durationMs, context.signal)
  const cutFrom = (kinds: readonly NodeKind[], direction: Direction) =>
    cut(cluster, target, kinds, direction, wait)
  switch (fault.kind) {
    case 'worker-kill':
    case 'serve-kill':
    case 'etcd-leader-kill':
    case 'etcd-follower-kill':
    case 'nats-kill':
    case 'postgres-crash':
      return killed(targets, wait)
    case 'worker-pause':
    case 'serve-pause':
    case 'etcd-leader-pause':
    case 'etcd-follower-pause':
    case 'nats-pause':
    case 'etcd-quorum-loss':
      return paused(targets, wait)
    case 'nats-restart':
    case 'postgres-restart':
      return restarted(target)
    case 'worker-block':
      process.kill(target.process.pid(), 'SIGUSR2')
      return wait()
    case 'worker-evict':
      await context.operators.evict(target.place.name)
      return wait()
    case 'worker-cut-all':
    case 'serve-cut-all':
    case 'nats-cut-all':
      return cutFrom(['etcd', 'nats', 'postgres', 'serve', 'worker'], 'both')
    case 'worker-cut-etcd':
    case 'serve-cut-etcd':
    case 'etcd-cut-peers':
      return cutFrom(['etcd'], 'both')
    case 'worker-cut-etcd-in':
    case 'etcd-cut-peers-in':
      return cutFrom(['etcd'], 'in')
    case 'worker-cut-etcd-out':
    case 'serve-cut-etcd-out':
    case 'etcd-cut-peers-out':
      return cutFrom(['etcd'], 'out')
    case 'worker-cut-postgres':
      return cutFrom(['postgres'], 'both')
    case 'worker-cut-nats':
      return cutFrom(['nats'], 'both')
    case 'etcd-cut-clients':
      return cutFrom(['worker', 'serve'], 'both')
    case 'nats-cut-clients-out':
      return cutFrom(['worker', 'serve'], 'out')
    case 'worker-slow-etcd':
    case 'worker-half-open':
    case 'worker-black-hole':
      return misrouted(context, fault, target, wait)
    case 'worker-clock-jump':
      return clockMoved(cluster, fault, target, wait)
    case 'etcd-compact':
      return compact(target, context.passedRevision())
    case 'etcd-defragment':
      await defragment(target)
      return
    default:
      fault.kind satisfies never
  }
}

/** Whether the node can be a target of the kind, be it free or not. */
export function isTarget(cluster: Cluster, kind: FaultKind, { place, down }: Node): boolean {
  if (down) return false
  switch (kind) {
    case 'worker-slow-etcd':
    case 'worker-half-open':
    case 'worker-black-hole':
      return cluster.proxies.has(place.name)
    case 'worker-clock-jump':
      return cluster.clockFiles.has(place.name)
    default:
      return true
  }
}

async function killed(targets: readonly Node[], wait: () => Promise<void>): Promise<void> {
  for (const node of targets) {
    node.down = true
    await node.process.kill()
  }
  await wait()
  for (const node of targets) {
    await node.process.restart()
    node.down = false
  }
}

async function restarted(node: Node): Promise<void> {
  node.down = true
  await node.process.restart()
  node.down = false
}

async function paused(targets: readonly Node[], wait: () => Promise<void>): Promise<void> {
  for (const node of targets) node.process.pause()
  await wait()
  for (const node of targets) node.process.resume()
}

/** Drops what goes between the node and all nodes of the kinds, and keeps connections as they stand. */
async function cut(
  cluster: Cluster,
  node: Node,
  kinds: readonly NodeKind[],
  direction: Direction,
  wait: () => Promise<void>,
): Promise<void> {
  const others = kinds
    .flatMap((kind) => placesOf(cluster.layout, kind))
    .filter((place) => place !== node.place)
    .map(({ address }) => address)
    .join(',')
  try {
    if (direction !== 'out') await iptables(node.place, ['-A', 'INPUT', '-s', others, '-j', 'DROP'])
    if (direction !== 'in') await iptables(node.place, ['-A', 'OUTPUT', '-d', others, '-j', 'DROP'])
    await wait()
  } finally {
    // One fault at a time has hold of a node, so every rule there is this one's.
    await iptables(node.place, ['-F'])
  }
}

async function iptables(place: NodePlace, words: readonly string[]): Promise<void> {
  const [entering = '', ...rest] = within(place.namespace)
  await run(entering, [...rest, 'iptables', '-w', ...words], { env: systemEnvironment() })
}

async function misrouted(
  { cluster }: FaultContext,
  fault: DealtFault,
  node: Node,
  wait: () => Promise<void>,
): Promise<void> {
  const proxy = cluster.proxies.get(node.place.name)
  if (fault.kind === 'worker-slow-etcd') {
    const delayMs = SLOW_MS.least + fault.random.integer(SLOW_MS.range)
    proxy?.order({ type: 'delay', delayMs })
    await wait()
    proxy?.order({ type: 'delay', delayMs: 0 })
  } else if (fault.kind === 'worker-half-open') {
    proxy?.order({ type: 'half-open' })
    await wait()
  } else {
    proxy?.order({ type: 'black-hole', on: true })
    await wait()
    proxy?.order({ type: 'black-hole', on: false })
  }
}

async function clockMoved(
  cluster: Cluster,
  fault: DealtFault,
  node: Node,
  wait: () => Promise<void>,
): Promise<void> {
  const file = cluster.clockFiles.get(node.place.name)
  if (file === undefined) return
  const jump = CLOCK_JUMPS_S[fault.random.integer(CLOCK_JUMPS_S.length)] ?? 0
  writeFileSync(file, `${jump < 0 ? '' : '+'}${jump}\n`)
  await wait()
  writeFileSync(file, '+0\n')
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0 && !signal.aborted) await delay(ms, undefined, { signal }).catch(() => {})
}
