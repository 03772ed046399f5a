/**
 * One group's changes as etcd would number them, and mirrors of them, each of which takes them in when
 * told to: what publishers are driven by in the tests of the map.
 */
import { encodeGroupConfig, newGroupConfig } from '../../src/core/group-config.ts'
import type { StateEvent } from '../../src/core/group-state.ts'
import { GroupState } from '../../src/core/group-state.ts'
import { groupName, memberName, operationId, sessionId } from '../../src/core/ids.ts'
import { groupKeys } from '../../src/core/keys.ts'
import { encodeMemberRecord } from '../../src/core/member-record.ts'
import { encodePartitionRecord } from '../../src/core/partition-record.ts'
import type { Telemetry, TelemetryEvent } from '../../src/ports/telemetry.ts'
import type { MapPublisher } from '../../src/runtime/map-publisher.ts'

export const GROUP = groupName('orders')
export const INCARNATION = 1_764_440_000
const KEYS = groupKeys('/tenure/v1/', GROUP)

export interface Truth {
  readonly revision: number
  join(member: number): void
  leave(member: number): void
  /** A grant to that member's living session at the next generation. */
  grant(partition: number, member: number): void
  revoke(partition: number, to: number): void
  raiseIncarnation(): void
  generation(partition: number): number
  /** Changes after the revision, up to another (default: all). */
  since(revision: number, upTo?: number): StateEvent[]
}

export function createTruth(partitions: number): Truth {
  const log: StateEvent[] = []
  const lives = new Map<number, number>()
  const generations = new Array<number>(partitions).fill(0)
  const owners = new Array<number>(partitions).fill(0)
  let revision = 0
  let incarnation = INCARNATION
  const session = (member: number) =>
    sessionId((member * 1000 + (lives.get(member) ?? 0) + 1).toString(16).padStart(16, '0'))
  const put = (key: string, value: string, lease: ReturnType<typeof session> | null = null) => {
    revision += 1
    const revisions = { createRevision: revision, modRevision: revision }
    log.push({ type: 'put', entry: { key, value, ...revisions, session: lease } })
  }
  const record = (partition: number) => ({
    incarnation,
    generation: generations[partition] ?? 0,
    operation: operationId((revision + 1).toString(16).padStart(16, '0')),
    previous: null,
    atMs: 0,
    unknown: null,
    owner: {
      member: memberName(`orders-${owners[partition]}`),
      session: session(owners[partition] ?? 0),
    },
    how: 'election' as const,
  })
  put(KEYS.incarnation, String(incarnation))
  put(KEYS.config, encodeGroupConfig(newGroupConfig({ partitions })))
  return {
    get revision() {
      return revision
    },
    join(member) {
      lives.set(member, (lives.get(member) ?? 0) + 1)
      const name = memberName(`orders-${member}`)
      const value = encodeMemberRecord({
        member: name,
        session: session(member),
        address: `10.0.0.${member}:8080`,
        weight: 1,
        capacity: null,
        zone: '',
        labels: {},
        state: 'active',
        versions: [1],
      })
      put(KEYS.member(name), value, session(member))
    },
    leave(member) {
      revision += 1
      const key = KEYS.member(memberName(`orders-${member}`))
      log.push({ type: 'delete', key, modRevision: revision })
    },
    grant(partition, member) {
      owners[partition] = member
      generations[partition] = (generations[partition] ?? 0) + 1
      put(
        KEYS.partition(partition),
        encodePartitionRecord({ ...record(partition), phase: 'owned' }),
      )
    },
    revoke(partition, to) {
      const move = {
        id: `m${revision}`,
        to: memberName(`orders-${to}`),
        reason: 'balance' as const,
        by: 'test',
        rewrites: 0,
        atMs: 0,
      }
      const revoking = { ...record(partition), phase: 'revoking' as const, move }
      put(KEYS.partition(partition), encodePartitionRecord(revoking))
    },
    raiseIncarnation() {
      incarnation += 1
      put(KEYS.incarnation, String(incarnation))
    },
    generation: (partition) => generations[partition] ?? 0,
    since: (from, upTo = revision) =>
      log.filter((event) => {
        const at = event.type === 'put' ? event.entry.modRevision : event.modRevision
        return at > from && at <= upTo
      }),
  }
}

export interface TruthMirror {
  readonly state: GroupState
  /** Publishers to tell of each batch. */
  readonly publishers: MapPublisher[]
  /** Takes in what happened, up to a revision (default: everything), as one batch. */
  catchUp(upTo?: number): void
}

export function createMirror(truth: Truth): TruthMirror {
  const state = new GroupState(KEYS)
  const publishers: MapPublisher[] = []
  return {
    state,
    publishers,
    catchUp(upTo = truth.revision) {
      if (upTo <= state.revision) return
      const change = state.apply(truth.since(state.revision, upTo), upTo)
      for (const publisher of publishers) publisher.onChange(change)
    },
  }
}

export function createRecorder(): Telemetry & { readonly events: TelemetryEvent[] } {
  const events: TelemetryEvent[] = []
  return { events, record: (event) => void events.push(event) }
}
