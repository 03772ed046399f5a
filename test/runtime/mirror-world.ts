/** One mirror over the in-memory etcd on virtual time, and a writer that meets no faults. */
import { groupName } from '../../src/core/ids.ts'
import { groupKeys } from '../../src/core/keys.ts'
import type { Operation } from '../../src/core/transaction.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { Mirror } from '../../src/runtime/mirror.ts'
import {
  createMemoryEtcd,
  createSeededRandom,
  createVirtualClock,
} from '../../src/testing/index.ts'
import { owned } from '../core/ownership-cases.ts'

export const GROUP = groupName('g')
export const KEYS = groupKeys('/tenure/v1/', GROUP)
export const RESYNC_MS = 15_000
const CALL = { timeoutMs: 1_000 }

export function createMirrorWorld() {
  const clock = createVirtualClock()
  const random = createSeededRandom(1)
  const etcd = createMemoryEtcd({ clock, random: random.fork('etcd') })
  const store = etcd.connect('tested')
  const writer = etcd.connect('writer')
  const told: TelemetryEvent[] = []
  const transact = (operation: Operation) =>
    clock.run(writer.transact({ compare: [], success: [operation], failure: [] }, CALL))
  return {
    clock,
    etcd,
    store,
    /** Why the mirror listed, in order. */
    lists: () => told.flatMap((event) => (event.type === 'mirror-listed' ? [event.why] : [])),
    mirror: () => {
      const telemetry = { record: (event: TelemetryEvent) => void told.push(event) }
      return new Mirror({ group: GROUP, keys: KEYS, store, clock, random, telemetry })
    },
    /** Puts a record of this generation. */
    write: async (partition: number, generation: number) => {
      const value = owned({ generation, operation: `op-${generation}` }).raw
      await transact({ type: 'put', key: KEYS.partition(partition), value })
    },
    putRaw: (key: string, value: string) => transact({ type: 'put', key, value }),
    erase: (partition: number) => transact({ type: 'delete', key: KEYS.partition(partition) }),
    /** Partition and generation of everything that really stands. */
    truth: () =>
      etcd
        .entries(`${KEYS.prefix}partitions/`)
        .map(({ key, value }) => `${Number(key.slice(-6))}:${JSON.parse(value).generation}`),
  }
}

export function shown(mirror: Mirror, partitions = 10): readonly string[] {
  const lines: string[] = []
  for (let partition = 0; partition < partitions; partition += 1) {
    const stored = mirror.state.record(partition)
    if (stored !== null) lines.push(`${partition}:${stored.record.generation}`)
  }
  return lines
}
