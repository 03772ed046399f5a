/** Members of one group spread over processes of the benchmark, and what they say together. */
import type { GroupSettings } from '../core/group-config.ts'
import { DEFAULT_KEY_PREFIX } from '../core/keys.ts'
import type { BenchProcess, BenchProcesses } from './bench-processes.ts'
import type { BenchContext } from './bench-types.ts'
import type { MemberNotes } from './grant-notes.ts'
import { memberOf } from './member-names.ts'

export type FleetOptions = {
  readonly group: string
  readonly members: number
  /** Processes that share the members; default: one each. */
  readonly processes?: number
  readonly settings: GroupSettings
  readonly itemMs: number | null
}

export type Fleet = {
  readonly processes: readonly BenchProcess[]
  /** Members of each process, in the order of `processes`. */
  readonly members: readonly (readonly string[])[]
  /** When the first of them was told to join. */
  readonly joinedAtMs: number
  /** Partitions served, by all processes or by those given. */
  serving(of?: readonly BenchProcess[]): number
  lastChangeMs(): number
  notes(reset: boolean): Promise<readonly MemberNotes[]>
  /** Resolves when all partitions are served. */
  allServing(timeoutMs?: number): Promise<void>
  leave(): Promise<void>
}

const ALL_SERVING_TIMEOUT_MS = 120_000

export async function joinFleet(context: BenchContext, options: FleetOptions): Promise<Fleet> {
  const { group, settings, itemMs } = options
  const processes = await context.processes.take(options.processes ?? options.members)
  const members = processes.map((_, index) => membersOf(options, index, processes.length))
  const { etcd, nats } = context.servers
  const joined = await Promise.all(
    processes.map((one, index) => {
      const names = members[index] ?? []
      const argument = { group, keyPrefix: DEFAULT_KEY_PREFIX, settings, etcd, nats, itemMs }
      return one.call('join', { ...argument, members: names })
    }),
  )
  return fleetOf(context.processes, {
    processes,
    members,
    settings,
    joinedAtMs: Math.min(...joined),
  })
}

function fleetOf(
  pool: BenchProcesses,
  parts: Pick<Fleet, 'processes' | 'members' | 'joinedAtMs'> & { readonly settings: GroupSettings },
): Fleet {
  const { processes, settings } = parts
  const partitions = settings.partitions ?? 0
  const serving = (of = processes) => of.reduce((sum, one) => sum + one.held().serving, 0)
  return {
    ...parts,
    serving,
    lastChangeMs: () => Math.max(...processes.map((one) => one.held().changedAtMs)),
    notes: (reset) => Promise.all(processes.map((one) => one.call('notes', { reset }))),
    allServing: (timeoutMs = ALL_SERVING_TIMEOUT_MS) =>
      pool.until(`all ${partitions} partitions served`, () => serving() === partitions, timeoutMs),
    async leave() {
      await Promise.all(processes.map((one) => one.call('leave', { members: null, force: true })))
    },
  }
}

function membersOf(options: FleetOptions, index: number, processes: number): readonly string[] {
  const names: string[] = []
  for (let member = index; member < options.members; member += processes) {
    names.push(memberOf(member))
  }
  return names
}
