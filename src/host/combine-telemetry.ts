/** Several receivers of telemetry as one; each gets every event, in the order given. */
import type { Telemetry } from '../ports/telemetry.ts'

export function combineTelemetry(...receivers: readonly Telemetry[]): Telemetry {
  return {
    record(event) {
      for (const receiver of receivers) receiver.record(event)
    },
  }
}
