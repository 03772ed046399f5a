/**
 * Faults one after the other, many at once, on targets that are free: never more than half of the
 * workers, and one fault at a time on each kind of server, so that quorum is lost only by the fault whose
 * name says so. What ended by itself is started again, and said.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { machineMs } from '../../src/dev/machine-time.ts'
import type { SeededRandom } from '../../src/testing/seeded-random.ts'
import { findLeader, isWhole } from './etcd-calls.ts'
import { actOut, type FaultContext, isTarget } from './fault-actions.ts'
import { type DealtFault, dealFaults, type FaultClass, type FaultKind } from './fault-kinds.ts'
import type { Node, UnexpectedEnd } from './nodes.ts'
import { EXIT_UNREACHABLE } from './worker-ends.ts'

export type FaultLine = {
  readonly kind: FaultKind
  readonly class: FaultClass
  readonly targets: readonly string[]
  readonly fromMs: number
  /** When it was healed; null: it was not. */
  readonly toMs: number | null
  /** Of faults that were under way when it began. */
  readonly over: number
  /** Why it could not be carried out as meant; null: it was. */
  readonly failure: string | null
}

export type Faults = {
  /** Makes trouble until the signal; resolves when all of it is healed. */
  trouble(signal: AbortSignal): Promise<void>
  lines(): readonly FaultLine[]
  /** Ends that nobody brought about. */
  ends(): readonly UnexpectedEnd[]
  close(): void
}

const GAP_MS = { least: 900, range: 3600 }
const WORKERS_AT_ONCE = 3
const LOOK_EVERY_MS = 200
const RESTART_AFTER_MS = 500
const RECOVERY_TIMEOUT_MS = 20_000
/** Evicted members end so, and those that cannot reach a server at the start. */
const EXPECTED_CODES: readonly number[] = [70, EXIT_UNREACHABLE]

export function createFaults(
  context: FaultContext,
  random: SeededRandom,
  say: (line: string) => void,
): Faults {
  const { nodes } = context.cluster
  const lines: FaultLine[] = []
  const ends: UnexpectedEnd[] = []
  const underWay = new Set<Promise<void>>()
  const hasTarget = (kind: FaultKind) =>
    nodes.some((node) => classOf(node) === kindClass(kind) && isTarget(context.cluster, kind, node))
  const deck = dealFaults(random, hasTarget)

  /** A second member that is taken away before the first one is back would be a loss of quorum. */
  const recovered = async (faultClass: FaultClass) => {
    const members = nodes.filter(({ place }) => place.kind === 'etcd')
    const endMs = machineMs() + RECOVERY_TIMEOUT_MS
    while (faultClass === 'etcd' && machineMs() < endMs && !(await isWhole(members))) {
      await delay(LOOK_EVERY_MS)
    }
  }
  const begin = (fault: DealtFault, targets: readonly Node[]) => {
    for (const node of targets) node.held = true
    const names = targets.map(({ place }) => place.name)
    const index = lines.length
    const line = {
      ...{ kind: fault.kind, class: fault.class, targets: names, fromMs: machineMs() },
      over: underWay.size,
    }
    lines.push({ ...line, toMs: null, failure: null })
    say(`${fault.kind} ${names.join(', ')}, ${(fault.durationMs / 1000).toFixed(1)} s`)
    const one: Promise<void> = actOut(context, fault, targets)
      .then(
        () => null,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      )
      .then((failure) => {
        lines[index] = { ...line, toMs: machineMs(), failure }
        underWay.delete(one)
        void recovered(fault.class).finally(() => {
          for (const node of targets) node.held = false
        })
      })
    underWay.add(one)
  }
  const beginIfFree = async (fault: DealtFault): Promise<boolean> => {
    const targets = await chooseTargets(context, fault)
    if (targets.length > 0) begin(fault, targets)
    return targets.length > 0
  }
  const watching = watchOver(nodes, ends, say)
  return {
    lines: () => lines,
    ends: () => ends,
    close: watching.close,
    async trouble(signal) {
      let waiting: DealtFault | null = null
      while (!signal.aborted) {
        await pause(GAP_MS.least + random.integer(GAP_MS.range), signal)
        if (signal.aborted) break
        // One fault whose targets are all taken waits for its turn; a second one is passed over.
        if (waiting !== null && (await beginIfFree(waiting))) waiting = null
        const fault: DealtFault = deck.next().value
        if (!(await beginIfFree(fault))) waiting ??= fault
      }
      await Promise.all(underWay)
    },
  }
}

/** Empty: none may be had now. */
async function chooseTargets(
  { cluster }: FaultContext,
  fault: DealtFault,
): Promise<readonly Node[]> {
  const { kind, random } = fault
  const ofClass = cluster.nodes.filter((node) => classOf(node) === fault.class)
  const taken = ofClass.filter(({ held, down }) => held || down).length
  if (taken >= (fault.class === 'worker' ? WORKERS_AT_ONCE : 1)) return []
  const free = ofClass.filter((node) => !node.held && isTarget(cluster, kind, node))
  const one = free[random.integer(free.length)]
  if (one === undefined) return []
  if (kind === 'etcd-quorum-loss') return free.filter((node) => node !== one)
  if (fault.class !== 'etcd' || !/leader|follower/.test(kind)) return [one]
  const leader = await findLeader(free)
  if (leader === null) return []
  if (kind.startsWith('etcd-leader')) return [leader]
  return free.filter((node) => node !== leader).slice(0, 1)
}

function classOf({ place }: Node): FaultClass {
  return place.kind
}

function kindClass(kind: FaultKind): FaultClass {
  return kind.slice(0, kind.indexOf('-')) as FaultClass
}

/** As an init system does: what ended by itself is started again. */
function watchOver(
  nodes: readonly Node[],
  ends: UnexpectedEnd[],
  say: (line: string) => void,
): { close(): void } {
  const restarting = new Set<Node>()
  const look = () => {
    for (const node of nodes) {
      if (node.down || node.process.running() || restarting.has(node)) continue
      const code = node.process.exitCode()
      // Null: it is ended or started by a fault right now.
      if (code === null) continue
      restarting.add(node)
      say(`${node.place.name} ended by itself with ${code}`)
      const isExpected = node.place.kind === 'worker' && EXPECTED_CODES.includes(code)
      if (!isExpected) ends.push({ node: node.place.name, code, atMs: machineMs() })
      delay(RESTART_AFTER_MS)
        .then(async () => {
          if (!node.down && !node.process.running()) await node.process.restart()
        })
        .catch((error: unknown) => say(`${node.place.name} cannot be started: ${error}`))
        .finally(() => restarting.delete(node))
    }
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
  return { close: () => clearInterval(timer) }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}
