/**
 * Publisher and followers of an ownership map in processes of the benchmark: the publisher has mirror and
 * publisher as a `tenure serve` has them and changes records itself; followers are observers.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { clock, random, shareBroadcast, shareStore } from '../composition/connections.ts'
import { createObserver } from '../composition/create-observer.ts'
import type { GroupName, MemberName } from '../core/ids.ts'
import { groupKeys } from '../core/keys.ts'
import { mapSubjects, SNAPSHOT_REQUEST } from '../core/map-wire.ts'
import { fnv1a32 } from '../core/partition-key.ts'
import { encodePartitionRecord, type Owner } from '../core/partition-record.ts'
import type { Operation } from '../core/transaction.ts'
import { machineMs } from '../dev/machine-time.ts'
import type { EtcdStoreOptions } from '../etcd/etcd-store.ts'
import type { NatsOptions } from '../nats/nats-link.ts'
import { ensureGroup } from '../runtime/group-setup.ts'
import { encodeFrame, ReplyAssembler } from '../runtime/map-frames.ts'
import { createMapPublisher } from '../runtime/map-publisher.ts'
import { Mirror } from '../runtime/mirror.ts'
import type { Observer } from '../runtime/observer-types.ts'
import { memberOf } from './member-names.ts'
import { createRawEtcd } from './raw-etcd.ts'

export type MapArgument = {
  readonly group: string
  readonly keyPrefix: string
  readonly etcd: EtcdStoreOptions
  readonly nats: NatsOptions
  readonly partitions: number
  readonly members: number
}

/** One commit: when it was sent, when this process's mirror had it, and what went out. */
export type MapCommit = {
  readonly revision: number
  readonly sentMs: number
  readonly mirroredMs: number
}
export type MapCommits = { readonly commits: readonly MapCommit[]; readonly deltaBytes: number }

/** A change of the map as one follower took it in. */
export type Applied = readonly { readonly revision: number; readonly atMs: number }[]

const PUTS_PER_TRANSACTION = 120
/** Partitions have been granted so often, from once on. */
const GENERATIONS = 16
const LEASE_S = 600
const CALL_TIMEOUT_MS = 30_000

export async function openMapSource(argument: MapArgument) {
  const { group, keyPrefix, partitions } = argument
  const keys = groupKeys(keyPrefix, group as GroupName)
  const raw = createRawEtcd(argument.etcd, 'lean')
  const store = await shareStore(argument.etcd)
  const broadcast = await shareBroadcast(argument.nats)
  const members = Array.from({ length: argument.members }, (_, index) => ({
    member: memberOf(index) as MemberName,
    session: random.sessionId(),
  }))
  await ensureGroup({
    store: store.value,
    keys,
    clock,
    group: group as GroupName,
    settings: { partitions },
  })
  const endings: (() => Promise<void>)[] = []
  for (const { member, session } of members) {
    endings.push(await raw.openLease(session, LEASE_S))
    const record = { v: 1, member, session, address: `test://${member}`, weight: 1, capacity: null }
    const value = JSON.stringify({
      ...record,
      zone: '',
      labels: {},
      state: 'active',
      versions: [1],
    })
    await put([{ type: 'put', key: keys.member(member), value, session }])
  }
  const mirror = new Mirror({
    ...{ group: group as GroupName, keys, store: store.value, clock, random },
    telemetry: { record: () => {} },
  })
  await mirror.ready
  const recordText = (partition: number, change: number): string => {
    // As a ring deals them and as moves leave them: without an order that a snapshot could be short by.
    const lot = fnv1a32(`${partition}/${group}`)
    const owner = (turn: number) => members[(lot + turn) % members.length] as Owner
    const incarnation = mirror.state.incarnation ?? 0
    const generation = 1 + ((lot >>> 8) % GENERATIONS) + change
    const previous = { ...owner(change - 1 + members.length), incarnation, generation }
    return encodePartitionRecord({
      ...{ phase: 'owned', incarnation, generation: generation + 1, owner: owner(change) },
      ...{ how: 'hand-over', previous, unknown: null },
      ...{ operation: random.operationId(), atMs: clock.wallMs() },
    })
  }
  await putAll(Array.from({ length: partitions }, (_, partition) => recordText(partition, 0)))
  let deltaBytes = 0
  let deltas: Uint8Array[][] = []
  const hearing = broadcast.value.subscribe(mapSubjects(group).delta, ({ data }) => {
    deltas.at(-1)?.push(data.slice())
  })
  const publisher = createMapPublisher({
    ...{ group: group as GroupName, broadcast: broadcast.value, clock, state: mirror.state },
    publisherId: random.operationId(),
    telemetry: {
      record: (event) => {
        if (event.type === 'map-published') deltaBytes += event.bytes
      },
    },
  })
  const waiting = new Set<() => void>()
  mirror.subscribe({
    changed: (change) => {
      for (const look of [...waiting]) look()
      publisher.onChange(change)
    },
    rewound: () => {},
  })
  publisher.setLeader(true)

  async function put(success: readonly Operation[]): Promise<void> {
    await raw.send(raw.prepare({ compare: [], success, failure: [] }))
  }
  /** These values of the first partitions; resolves when etcd has them. */
  async function putAll(
    values: readonly string[],
    keyOf: (partition: number) => string = keys.partition,
  ): Promise<void> {
    const sending: Promise<void>[] = []
    for (let first = 0; first < values.length; first += PUTS_PER_TRANSACTION) {
      const some = values.slice(first, first + PUTS_PER_TRANSACTION)
      sending.push(
        put(some.map((value, place) => ({ type: 'put', key: keyOf(first + place), value }))),
      )
      if (sending.length >= 8) await sending.shift()
    }
    await Promise.all(sending)
  }
  /** Resolves with the moment at which the mirror's newest event is of the partition's new value. */
  const mirrored = (partition: number, value: string): Promise<number> =>
    new Promise((resolve) => {
      const look = () => {
        if (mirror.state.record(partition)?.raw !== value) return
        waiting.delete(look)
        resolve(machineMs())
      }
      waiting.add(look)
    })
  let round = 0
  // Beside the group's prefix, so that its mirror hears nothing of it.
  const aside = `${keyPrefix}${group}-raw/`
  let rawHeard = (_events: number) => {}
  const unwatch = await raw.watch(aside, (events) => rawHeard(events.length))
  endings.push(async () => unwatch())
  return {
    /** Commits so many times a change of so many partitions, one after the other. */
    async commit(commits: number, count: number, gapMs: number): Promise<MapCommits> {
      const done: MapCommit[] = []
      deltaBytes = 0
      deltas = []
      for (let index = 0; index < commits; index += 1) {
        round += 1
        deltas.push([])
        const values = Array.from({ length: count }, (_, place) => recordText(place, round))
        const seen = mirrored(count - 1, values.at(-1) ?? '')
        const sentMs = machineMs()
        await putAll(values)
        const mirroredMs = await seen
        done.push({ revision: mirror.state.revision, sentMs, mirroredMs })
        await delay(gapMs)
      }
      return { commits: done, deltaBytes: deltaBytes / commits }
    },
    /**
     * As many puts as a commit has, of records that nobody's mirror holds, through raw gRPC; resolves when
     * a raw watch has told of the last.
     */
    async commitRaw(count: number): Promise<void> {
      const values = Array.from({ length: count }, (_, place) => recordText(place, round))
      let missing = count
      const heard = new Promise<void>((resolve) => {
        rawHeard = (events) => {
          missing -= events
          if (missing <= 0) resolve()
        }
      })
      await putAll(values, (partition) => `${aside}${partition}`)
      await heard
    },
    /** What the last commits were told with, one after the other. */
    deltas(): readonly (readonly Uint8Array[])[] {
      return deltas.filter((parts) => parts.length > 0)
    },
    /** Bytes of the answer to a request for a snapshot, headers of its pieces included. */
    async snapshotBytes(): Promise<number> {
      let bytes = 0
      const assembler = new ReplyAssembler()
      const subject = mapSubjects(group).get
      const request = encodeFrame(SNAPSHOT_REQUEST)
      await broadcast.value.request(subject, request, { timeoutMs: CALL_TIMEOUT_MS }, (reply) => {
        bytes += reply.length
        return assembler.add(reply)
      })
      if (assembler.complete() === null) throw new Error('no snapshot came')
      return bytes
    },
    async close(): Promise<void> {
      publisher.close()
      hearing.close()
      mirror.close()
      for (const end of endings) await end()
      raw.close()
      await Promise.all([store.release(), broadcast.release()])
    },
  }
}
export type MapSource = Awaited<ReturnType<typeof openMapSource>>

export class MapFollowers {
  private observers: Observer[] = []
  private applied: { revision: number; atMs: number }[][] = []

  async follow(group: string, nats: NatsOptions, count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const observer = await createObserver({ group, nats, telemetry: { record: () => {} } })
      const applied: { revision: number; atMs: number }[] = []
      observer.onChange(({ version }) => {
        applied.push({ revision: version.revision, atMs: machineMs() })
      })
      this.observers.push(observer)
      this.applied.push(applied)
    }
    await Promise.all(this.observers.map((observer) => observer.ready))
  }

  /** The lowest revision that any of them has. */
  reached(): number {
    return Math.min(...this.observers.map(({ version }) => version.revision))
  }

  /** What each took in since the last call. */
  take(): readonly Applied[] {
    return this.applied.map((applied) => applied.splice(0))
  }

  close(): void {
    for (const observer of this.observers) observer.close()
    this.observers = []
    this.applied = []
  }
}
