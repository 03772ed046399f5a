/** The story of one run around a broken promise, for people: what concerned that partition, in order. */
import type { Breach } from './breach.ts'
import type { Plan } from './plan.ts'
import type { TraceEntry } from './trace.ts'

/** Effects are many; the last few say what there is to say. */
const EFFECTS_SHOWN = 6

export function timelineOf(
  trace: readonly TraceEntry[],
  breach: Breach,
  linesMax: number,
): readonly string[] {
  const { partition } = breach
  const concerns = trace
    .filter((entry) => entry.atMs <= breach.atMs + 1)
    .filter(
      (entry) => entry.partition === null || partition === null || entry.partition === partition,
    )
    .sort((a, b) => a.atMs - b.atMs)
  const effects = concerns.filter(({ text }) => text.startsWith('effect '))
  const left = new Set(effects.slice(0, Math.max(0, effects.length - EFFECTS_SHOWN)))
  const lines = concerns.filter((entry) => !left.has(entry)).map(lineOf)
  if (lines.length <= linesMax) return lines
  return [`… ${lines.length - linesMax} earlier lines`, ...lines.slice(-linesMax)]
}

export function describePlan({ seed, shape, faultsMs, faults, probe }: Plan): readonly string[] {
  const { workers, partitions, fenced, drainPolicy, leaseTtlMs, restartGraceMs } = shape
  const group = fenced ? 'fenced' : 'unfenced'
  return [
    `world ${seed}: ${workers} workers, ${partitions} partitions, ${group}, policy ${drainPolicy}, T ${leaseTtlMs} ms, grace ${restartGraceMs} ms, faults for ${seconds(faultsMs)} s, then probe ${probe}`,
    ...faults.map(({ atMs, kind, target, other, forMs, aim }) => {
      const aimed = aim === null ? '' : `, aimed at ${aim}`
      return `  ${seconds(atMs)} s ${kind} (${target}, ${other}) for ${forMs} ms${aimed}`
    }),
  ]
}

function lineOf({ atMs, partition, text }: TraceEntry): string {
  const where = partition === null ? '   ' : `p${String(partition).padEnd(2)}`
  return `${seconds(atMs).padStart(9)} ${where} ${text}`
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}
