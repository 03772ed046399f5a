/** Alarms that were raised lately, for whoever asks what is wrong with a group right now. */
import type { GroupName } from '../core/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Telemetry } from '../ports/telemetry.ts'

/** An alarm that is not raised again counts as over after this. */
const STANDS_MS = 10 * 60_000
const KEPT_MAX = 50

export type StandingAlarms = Telemetry & {
  /** `<code>: <detail>`, newest last. */
  of(group: GroupName): readonly string[]
}

export function createStandingAlarms(clock: Clock): StandingAlarms {
  const raised = new Map<string, { readonly group: GroupName; readonly atMs: number }>()
  return {
    record(event) {
      if (event.type !== 'alarm') return
      const { group, code, detail } = event
      const text = `${code}: ${detail}`
      raised.delete(text)
      raised.set(text, { group, atMs: clock.monotonicMs() })
      const [oldest] = raised.keys()
      if (raised.size > KEPT_MAX && oldest !== undefined) raised.delete(oldest)
    },
    of(group) {
      const sinceMs = clock.monotonicMs() - STANDS_MS
      return [...raised]
        .filter(([, at]) => at.group === group && at.atMs >= sinceMs)
        .map(([text]) => text)
    },
  }
}
