/** Members of one group inside this process, each with its own way to etcd, for tests of size. */
import { startWorker } from '../../../src/composition/start-worker.ts'
import type { GroupSettings } from '../../../src/core/group-config.ts'
import type { TelemetryEvent } from '../../../src/ports/telemetry.ts'
import type { Partition, Worker } from '../../../src/runtime/worker-options.ts'

export type Recorded = {
  readonly counts: Map<TelemetryEvent['type'], number>
  readonly events: TelemetryEvent[]
}

export function record(): Recorded & { record(event: TelemetryEvent): void } {
  const counts = new Map<TelemetryEvent['type'], number>()
  const events: TelemetryEvent[] = []
  return {
    counts,
    events,
    record(event) {
      counts.set(event.type, (counts.get(event.type) ?? 0) + 1)
      if (event.type === 'lost' || event.type === 'alarm') events.push(event)
    },
  }
}

/** A worker that does one piece of work in each partition as soon as it serves it. */
export function startMember(options: {
  readonly group: string
  readonly member: string
  readonly etcd: string
  readonly nats: string
  readonly settings: GroupSettings
  readonly telemetry: ReturnType<typeof record>
  /** Positions in which work was done, by partition. */
  readonly worked: Map<number, number>
}): Promise<Worker> {
  const { group, member, settings, telemetry, worked } = options
  return startWorker({
    group,
    member,
    settings,
    telemetry,
    signals: false,
    etcd: { endpoints: [options.etcd] },
    nats: { servers: [options.nats] },
    run: (p: Partition) => p.work(() => void worked.set(p.id, p.token.generation)),
  })
}

export function serving(...workers: readonly Worker[]): number {
  let total = 0
  for (const worker of workers) {
    for (const { status } of worker.partitions()) if (status === 'serving') total += 1
  }
  return total
}
