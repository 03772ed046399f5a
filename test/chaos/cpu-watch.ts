/**
 * How long each process of the run wanted a processor and had none, as the kernel counts it. A machine that
 * is busy with other things lets an idle process run at once, and starves one that has work.
 *
 * Not promised: anything where the kernel does not count (no `schedstat`): then it sees no waiting.
 */
import { readFileSync } from 'node:fs'
import { machineMs } from '../../src/dev/machine-time.ts'
import type { WaitLine } from './machine-load.ts'
import type { Node } from './nodes.ts'

export type CpuWatch = { lines(): readonly WaitLine[]; close(): void }

type Seen = { readonly pid: number; readonly atMs: number; readonly waitedMs: number }

const EVERY_MS = 250
const WORTH_MS = 10

export function watchCpu(nodes: readonly Node[]): CpuWatch {
  const lines: WaitLine[] = []
  const seen = new Map<Node, Seen>()
  const look = (node: Node) => {
    const pid = node.process.pid()
    const waitedMs = pid === 0 ? null : readWaitedMs(pid)
    const before = seen.get(node)
    if (waitedMs === null) return
    const now: Seen = { pid, atMs: machineMs(), waitedMs }
    seen.set(node, now)
    if (before?.pid !== pid || waitedMs - before.waitedMs < WORTH_MS) return
    lines.push({
      ...{ type: 'wait', node: node.place.name, fromMs: before.atMs, toMs: now.atMs },
      waitedMs: waitedMs - before.waitedMs,
    })
  }
  const timer = setInterval(() => nodes.forEach(look), EVERY_MS)
  return { lines: () => lines, close: () => clearInterval(timer) }
}

/** Second of the numbers, in nanoseconds; null: the process is gone, or nothing is counted. */
function readWaitedMs(pid: number): number | null {
  try {
    const waited = Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1])
    return Number.isFinite(waited) ? waited / 1e6 : null
  } catch {
    return null
  }
}
