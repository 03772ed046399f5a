/**
 * Serve processes and plain members of one group on the in-memory etcd and virtual time. The members
 * here only hold a session, take what elections give them and hand over when asked: the rebalancer and
 * the group service are what is tested.
 */
import { elect, handOver, vacate } from '../../src/core/commit.ts'
import { assignGroup } from '../../src/core/group-assignment.ts'
import type { GroupSettings } from '../../src/core/group-config.ts'
import type { PartitionId } from '../../src/core/ids.ts'
import { groupName, memberName } from '../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../../src/core/keys.ts'
import { encodeMemberRecord } from '../../src/core/member-record.ts'
import { decodePartitionRecord } from '../../src/core/partition-record.ts'
import { memberSessionKeys } from '../../src/core/session.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { createRingOrder } from '../../src/ring/hashring-order.ts'
import { Committer } from '../../src/runtime/committer.ts'
import { createGroupService } from '../../src/runtime/group-service.ts'
import { ensureGroup } from '../../src/runtime/group-setup.ts'
import { Mirror } from '../../src/runtime/mirror.ts'
import { createRebalancer } from '../../src/runtime/rebalancer.ts'
import { SessionDriver } from '../../src/runtime/session-driver.ts'
import {
  createMemoryEtcd,
  createSeededRandom,
  createVirtualClock,
} from '../../src/testing/index.ts'

const GROUP = groupName('orders')
export const KEYS = groupKeys(DEFAULT_KEY_PREFIX, GROUP)

export type ServeProcess = Awaited<ReturnType<ServedGroupWorld['serve']>>

export class ServedGroupWorld {
  readonly clock = createVirtualClock()
  readonly random = createSeededRandom('served group')
  readonly etcd = createMemoryEtcd({ clock: this.clock, random: this.random.fork('etcd') })
  readonly orderOf = createRingOrder()
  readonly settings: GroupSettings

  constructor(settings: GroupSettings = {}) {
    this.settings = { partitions: 12, ...settings }
  }

  /** A serve process: mirror, rebalancer and group service over a store of its own. */
  async serve(name: string) {
    const parts = await this.process(name)
    const rebalancer = createRebalancer(parts)
    const service = createGroupService(parts)
    return { ...parts, rebalancer, service }
  }

  /** A member with a live session; `isStuck` keeps its drains from ending. */
  async member(name: string) {
    const parts = await this.process(name)
    const { clock, store, mirror, committer, random } = parts
    const member = memberName(name)
    const id = random.sessionId()
    const value = encodeMemberRecord({
      ...{ member, session: id, address: `${name}:80`, weight: 1, capacity: null, zone: '' },
      ...{ labels: {}, state: 'active', versions: [1] },
    })
    let isLive = false
    const self = { ...parts, member, session: id, isStuck: false, drive: (): void => {} }
    const session = new SessionDriver({
      ...{ session: id, store, clock, keys: memberSessionKeys(KEYS, member), value },
      settings: { ttlMs: 6000, marginMs: 1000 },
      listener: {
        opened: () => {
          isLive = true
          self.drive()
        },
        proved: () => {},
        renewalFailed: () => {},
        ended: () => {
          isLive = false
        },
      },
    })
    const me = { member, session: id }
    const sent = new Set<string>()
    self.drive = () => {
      const { state } = mirror
      if (!isLive || state.incarnation === null) return
      const stamp = () => ({ operation: random.operationId(), atMs: clock.wallMs() })
      for (const { partition, to } of assignGroup(state, this.orderOf).vacancies) {
        const raw = `elect ${partition} ${state.record(partition)?.raw}`
        if (to !== member || sent.has(raw)) continue
        sent.add(raw)
        const stored = state.record(partition)
        committer.commit(elect(partition, stored, me, state.incarnation, stamp()), () => {})
      }
      for (let partition = 0; partition < state.partitions && !self.isStuck; partition += 1) {
        const stored = state.record(partition)
        if (stored?.record.phase !== 'revoking' || stored.record.owner.session !== id) continue
        if (sent.has(stored.raw)) continue
        sent.add(stored.raw)
        const { to } = stored.record.move
        const grantee = to === null ? undefined : state.members.get(to)?.session
        const commit =
          to === null || grantee === undefined
            ? vacate(partition, stored, stamp())
            : handOver(
                partition,
                stored,
                { member: to, session: grantee },
                state.incarnation,
                stamp(),
              )
        committer.commit(commit, (reply) => {
          if (reply.type !== 'done') sent.delete(stored.raw)
        })
      }
    }
    mirror.subscribe({ changed: self.drive, rewound: () => {} })
    await this.until(() => isLive, `${name} is live`)
    return { ...self, self, live: () => isLive, close: () => session.close('closed') }
  }

  /** Lets time pass until the condition holds. */
  async until(condition: () => boolean, what: string, limitMs = 30_000): Promise<void> {
    if (await this.clock.runUntil(condition, { limitMs })) return
    throw new Error(`not within ${limitMs} virtual ms: ${what}`)
  }

  /** The truth: by partition, the owner whose session lives. */
  owners(): readonly (string | null)[] {
    const live = new Map(
      this.etcd.entries(`${KEYS.prefix}members/`).map(({ key, session }) => [key, session]),
    )
    const owners: (string | null)[] = new Array(this.settings.partitions ?? 0).fill(null)
    for (const { key, value } of this.etcd.entries(`${KEYS.prefix}partitions/`)) {
      const partition: PartitionId = Number(key.slice(-6))
      const record = decodePartitionRecord(value, partition)
      if (record.phase === 'vacant') continue
      const { member, session } = record.owner
      if (live.get(KEYS.member(member)) === session) owners[partition] = member
    }
    return owners
  }

  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const owner of this.owners()) counts[owner ?? '-'] = (counts[owner ?? '-'] ?? 0) + 1
    return counts
  }

  /** Partitions whose record asks for a move. */
  revoking(): number {
    const records = this.etcd.entries(`${KEYS.prefix}partitions/`)
    return records.filter(({ value }) => value.includes('"phase":"revoking"')).length
  }

  private async process(name: string) {
    const clock = this.clock.createProcess()
    const random = this.random.fork(name)
    const store = this.etcd.connect(name, { clock })
    const events: TelemetryEvent[] = []
    const telemetry = { record: (event: TelemetryEvent) => void events.push(event) }
    const shared = { group: GROUP, keys: KEYS, store, clock, random, telemetry }
    await this.clock.run(ensureGroup({ ...shared, settings: this.settings }))
    const mirror = new Mirror(shared)
    const committer = new Committer({ ...shared, timeoutMs: 2000 })
    await this.clock.run(mirror.ready)
    return { ...shared, mirror, committer, orderOf: this.orderOf, events }
  }
}
