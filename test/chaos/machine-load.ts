/**
 * What of a stretch of time the machine took away: from an idle process (probe-program.ts), and from those
 * of the run that had work (cpu-watch.ts).
 */
import { MARGIN_MS } from './layout.ts'

export type Stretch = { readonly fromMs: number; readonly toMs: number }

/** An idle process was let run that much too late. */
export type StallLine = Stretch & { readonly type: 'stall' }
/** Of this time the process waited so long for a processor. */
export type WaitLine = Stretch & {
  readonly type: 'wait'
  readonly node: string
  readonly waitedMs: number
}
/** A commit of etcd that nothing waits for. */
export type CommitLine = Stretch & { readonly type: 'commit' }

export type MachineLine = StallLine | WaitLine | CommitLine

/** All lines of a run, to be asked about many stretches. */
export type MachineLoad = {
  /** By their beginning. */
  readonly lines: readonly MachineLine[]
  readonly longestMs: number
}

export function machineLoad(lines: readonly MachineLine[]): MachineLoad {
  const sorted = [...lines].sort((a, b) => a.fromMs - b.fromMs)
  const longestMs = sorted.reduce((most, { fromMs, toMs }) => Math.max(most, toMs - fromMs), 0)
  return { lines: sorted, longestMs }
}

/** Of the nodes that a measure hangs on; null: of all. */
export type Involved = ReadonlySet<string> | null

/** Altogether for longer than a session's margin the machine did not let them run. */
export function isStalled(machine: MachineLoad, stretch: Stretch, involved: Involved): boolean {
  return stalledMs(machine, stretch, involved) > MARGIN_MS
}

/** By the one that was kept waiting longest. */
export function stalledMs(machine: MachineLoad, stretch: Stretch, involved: Involved): number {
  let idleMs = 0
  const waitedMs = new Map<string, number>()
  for (const line of within(machine, stretch)) {
    const lengthMs = line.toMs - line.fromMs
    const part = overlapMs(line, stretch) / lengthMs
    if (line.type === 'stall') idleMs += part * lengthMs
    else if (line.type === 'wait' && (involved === null || involved.has(line.node))) {
      waitedMs.set(line.node, (waitedMs.get(line.node) ?? 0) + part * line.waitedMs)
    }
  }
  return Math.max(idleMs, ...waitedMs.values())
}

export function slowestCommitMs(machine: MachineLoad, stretch: Stretch): number {
  let slowestMs = 0
  for (const line of within(machine, stretch)) {
    if (line.type === 'commit') slowestMs = Math.max(slowestMs, line.toMs - line.fromMs)
  }
  return slowestMs
}

/** How much of the whole the stretches cover together, 0 .. 1. */
export function shareOf(stretches: readonly Stretch[], whole: Stretch): number {
  let coveredMs = 0
  let reachedMs = Number.NEGATIVE_INFINITY
  for (const { fromMs, toMs } of [...stretches].sort((a, b) => a.fromMs - b.fromMs)) {
    coveredMs += Math.max(0, toMs - Math.max(fromMs, reachedMs))
    reachedMs = Math.max(reachedMs, toMs)
  }
  return coveredMs / (whole.toMs - whole.fromMs)
}

/** Those that overlap the stretch. An hour has 60,000 lines and 10,000 stretches: no look at all of them. */
function* within(
  { lines, longestMs }: MachineLoad,
  { fromMs, toMs }: Stretch,
): Iterable<MachineLine> {
  for (let index = firstFrom(lines, fromMs - longestMs); index < lines.length; index += 1) {
    const line = lines[index] as MachineLine
    if (line.fromMs >= toMs) return
    if (line.toMs > fromMs) yield line
  }
}

/** The first line that begins at that time or later. */
function firstFrom(lines: readonly MachineLine[], atMs: number): number {
  let low = 0
  let high = lines.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((lines[middle] as MachineLine).fromMs < atMs) low = middle + 1
    else high = middle
  }
  return low
}

function overlapMs(line: Stretch, stretch: Stretch): number {
  return Math.min(line.toMs, stretch.toMs) - Math.max(line.fromMs, stretch.fromMs)
}
