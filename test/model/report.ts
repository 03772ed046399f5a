/** What a search of one configuration found, as a line for people and as JSON for programs. */
import type { Configuration } from './configurations.ts'
import type { Found } from './search.ts'

export type Report = {
  readonly configuration: string
  readonly liveness: boolean
  readonly states: number
  readonly transitions: number
  readonly depth: number
  readonly seconds: number
  readonly statesPerSecond: number
  readonly expectedOmissions: number
  readonly memoryMiB: number
  readonly violation: Found['violation']
}

export function reportOf(configuration: Configuration, found: Found): Report {
  const { states, transitions, depth, seconds, expectedOmissions, violation } = found
  return {
    configuration: configuration.name,
    liveness: configuration.liveness,
    ...{ states, transitions, depth, seconds, expectedOmissions, violation },
    statesPerSecond: Math.round(states / Math.max(seconds, 0.001)),
    memoryMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
  }
}

const NAME_WIDTH = 58

export function headLine(): string {
  return `${'configuration'.padEnd(NAME_WIDTH)}     states transitions depth  seconds  states/s  omitted`
}

export function lineOf(report: Report): string {
  const { configuration, states, transitions, depth, seconds, statesPerSecond } = report
  return [
    configuration.padEnd(NAME_WIDTH),
    String(states).padStart(11),
    String(transitions).padStart(12),
    String(depth).padStart(6),
    seconds.toFixed(1).padStart(9),
    String(statesPerSecond).padStart(10),
    report.expectedOmissions.toExponential(0).padStart(9),
  ].join('')
}

/** The broken promise and the shortest trace to it. */
export function violationText({ configuration, violation }: Report): string {
  if (violation === null) return ''
  const steps = violation.trace.map((step, at) => `  ${String(at + 1).padStart(3)} ${step}`)
  return [`${violation.detail}`, `  in "${configuration}", after:`, ...steps].join('\n')
}
