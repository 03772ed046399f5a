/** The `Groups` port over plain objects: one group, `orders`, whose state tests set at will. */
import { DEFAULT_GROUP_CONFIG, type GroupConfig } from '../../src/core/group-config.ts'
import { groupName, memberName, sessionId } from '../../src/core/ids.ts'
import type { OperatorMark, RebalanceRecord } from '../../src/core/operator-records.ts'
import type {
  By,
  Change,
  GroupAdmin,
  Groups,
  GroupView,
  MapEvent,
  MapVersion,
  MemberView,
  PartitionView,
  PlannedMove,
  Refusal,
} from '../../src/ports/group-access.ts'

export const SESSION = sessionId('00000000000000a1')
const EVENTS_KEPT = 5

export type PlainGroup = {
  readonly groups: Groups
  readonly group: string
  version: MapVersion
  ageMs: number
  stale: boolean
  config: GroupConfig
  readonly partitions: PartitionView[]
  members: MemberView[]
  rebalances: RebalanceRecord[]
  plan: PlannedMove[]
  /** While set, every change is refused with it. */
  refusal: Refusal | null
  /** What reached the admin side, in order. */
  readonly calls: { readonly name: string; readonly arguments: readonly unknown[] }[]
  listeners(): number
  /** Changes partitions at the next revision and tells listeners. */
  change(...changed: (Partial<PartitionView> & { readonly partition: number })[]): MapEvent
}

export function ownedBy(member: string, partition: number): PartitionView {
  return {
    partition,
    phase: 'owned',
    incarnation: 1_764_440_000,
    generation: 5,
    owner: { member: memberName(member), session: SESSION, address: `${member}:7000`, live: true },
    serving: true,
    how: 'election',
    move: null,
    previous: null,
    disabled: false,
    why: null,
    changedAtMs: 1,
  }
}

export function vacant(partition: number, why: string): PartitionView {
  const owned = ownedBy('nobody', partition)
  return { ...owned, phase: 'vacant', owner: null, serving: false, how: null, why }
}

export function memberNamed(name: string, owned: number): MemberView {
  return {
    member: memberName(name),
    session: SESSION,
    address: `${name}:7000`,
    weight: 1,
    capacity: null,
    zone: '',
    labels: { tier: 'a' },
    state: 'active',
    versions: [1],
    owned,
    cordon: null,
    evicting: false,
  }
}

export function createPlainGroup(partitionCount = 8): PlainGroup {
  const listeners = new Set<(event: MapEvent) => void>()
  const kept: MapEvent[] = []
  const state: PlainGroup = {
    group: groupName('orders'),
    groups: {
      names: () => ['orders'],
      find: (name) => (name === 'orders' ? { view, admin } : null),
    },
    version: { incarnation: 1_764_440_000, revision: 100 },
    ageMs: 12,
    stale: false,
    config: { ...DEFAULT_GROUP_CONFIG, partitions: partitionCount },
    partitions: Array.from({ length: partitionCount }, (_, partition) =>
      ownedBy(partition % 2 === 0 ? 'orders-0' : 'orders-1', partition),
    ),
    members: [memberNamed('orders-0', 4), memberNamed('orders-1', 4)],
    rebalances: [],
    plan: [],
    refusal: null,
    calls: [],
    listeners: () => listeners.size,
    change(...changed) {
      state.version = { ...state.version, revision: state.version.revision + 1 }
      const partitions = changed.map((patch) => ({
        ...(state.partitions[patch.partition] as PartitionView),
        ...patch,
      }))
      for (const each of partitions) state.partitions[each.partition] = each
      const event = { version: state.version, partitions }
      kept.push(event)
      if (kept.length > EVENTS_KEPT) kept.shift()
      for (const listener of listeners) listener(event)
      return event
    },
  }
  const view = createView(state, listeners, kept)
  const admin = createAdmin(state)
  return state
}

function createView(
  state: PlainGroup,
  listeners: Set<(event: MapEvent) => void>,
  kept: readonly MapEvent[],
): GroupView {
  const count = (is: (partition: PartitionView) => boolean) => state.partitions.filter(is).length
  return {
    freshness: () => ({ version: state.version, ageMs: state.ageMs, stale: state.stale }),
    summary: () => ({
      group: state.group,
      partitions: state.partitions.length,
      owned: count((each) => each.owner !== null),
      vacant: count((each) => each.owner === null),
      moving: count((each) => each.move !== null),
      halted: 0,
      notServing: count((each) => !each.serving),
      members: state.members.length,
      rebalancer: SESSION,
      incarnation: state.version.incarnation,
      frozen: null,
      disabled: null,
      alarms: [],
    }),
    config: () => state.config,
    partition: (partition) => state.partitions[partition] as PartitionView,
    // A test changes what it likes when it likes: nothing may be kept.
    edition: () => Math.random(),
    isServing: (partition) => (state.partitions[partition] as PartitionView).serving,
    partitions: () => state.partitions,
    members: () => state.members,
    rebalances: () => state.rebalances,
    partitionOf: (key) => key.length % state.partitions.length,
    plan: () => state.plan,
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    eventsSince({ revision }) {
      const oldest = kept[0]?.version.revision ?? state.version.revision + 1
      if (revision < oldest - 1) return null
      return kept.filter((event) => event.version.revision > revision)
    },
  }
}

function createAdmin(state: PlainGroup): GroupAdmin {
  const done = <T>(name: string, given: readonly unknown[], value: () => T): Promise<Change<T>> => {
    state.calls.push({ name, arguments: given })
    return Promise.resolve(state.refusal ?? { ok: true, value: value() })
  }
  const mark = ({ by, why }: By): OperatorMark => ({ by, why, atMs: 1, untilMs: null })
  return {
    requestRebalance: (kind, by, id) =>
      done('requestRebalance', [kind, by, id], () => {
        const found = state.rebalances.find((each) => each.id === id)
        if (found !== undefined) return { record: found, created: false }
        const record: RebalanceRecord = {
          id: id ?? `rebalance-${state.rebalances.length}`,
          kind,
          state: 'requested',
          reason: by.why,
          by: by.by,
          planned: null,
          moved: 0,
          requestedAtMs: 1,
          finishedAtMs: null,
          note: '',
        }
        state.rebalances.push(record)
        return { record, created: true }
      }),
    cancelRebalance(id) {
      const found = state.rebalances.find((each) => each.id === id)
      if (found === undefined) {
        const detail = `no rebalance "${id}"`
        return Promise.resolve({ ok: false, code: 'unknown-rebalance', detail })
      }
      return done('cancelRebalance', [id], () => ({ ...found, state: 'cancelling' as const }))
    },
    setFreeze: (by) => done('setFreeze', [by], () => ({ ...mark(by), untilMs: by.untilMs })),
    clearFreeze: () => done('clearFreeze', [], () => null),
    setCordon: (member, by) => done('setCordon', [member, by], () => mark(by)),
    clearCordon: (member) => done('clearCordon', [member], () => null),
    setDisabled: (partition, by) => done('setDisabled', [partition, by], () => mark(by)),
    clearDisabled: (partition) => done('clearDisabled', [partition], () => null),
    evict: (member, by) => done('evict', [member, by], () => mark(by)),
    raiseIncarnation: (by) => done('raiseIncarnation', [by], () => 1_764_440_001),
    changeConfig: (settings) => done('changeConfig', [settings], () => state.config),
  }
}
