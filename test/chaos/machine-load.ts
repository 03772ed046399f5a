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

/** Of the nodes that a measure hangs on; null: of all. */
export type Involved = ReadonlySet<string> | null

/** Altogether for longer than a session's margin the machine did not let them run. */
export function isStalled(
  machine: readonly MachineLine[],
  stretch: Stretch,
  involved: Involved,
): boolean {
  return stalledMs(machine, stretch, involved) > MARGIN_MS
}

/** By the one that was kept waiting longest. */
export function stalledMs(
  machine: readonly MachineLine[],
  stretch: Stretch,
  involved: Involved,
): number {
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

export function slowestCommitMs(machine: readonly MachineLine[], stretch: Stretch): number {
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

function within(machine: readonly MachineLine[], { fromMs, toMs }: Stretch) {
  return machine.filter((line) => line.toMs > fromMs && line.fromMs < toMs)
}

function overlapMs(line: Stretch, stretch: Stretch): number {
  return Math.min(line.toMs, stretch.toMs) - Math.max(line.fromMs, stretch.fromMs)
}
