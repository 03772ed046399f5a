/**
 * One group in a `serve` process, over the ports: a mirror, a rebalancer that campaigns, a publisher of
 * the map and the operators' service. Used by `tenure serve` with the real adapters and by
 * `tenure/testing` with those in memory.
 *
 *   group ensured → mirror listed → serving → closed: service, publisher, election, mirror
 */
import type { GroupSettings } from '../core/group-config.ts'
import type { GroupName, PartitionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { OwnershipMap } from '../core/ownership-map.ts'
import type { PreferenceOrderFactory } from '../core/preference-order.ts'
import type { Position } from '../core/token.ts'
import type { Broadcast } from '../ports/broadcast.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { Committer } from './committer.ts'
import { createGroupService, type GroupService } from './group-service.ts'
import { ensureGroup } from './group-setup.ts'
import { createMapPublisher, type MapPublisher } from './map-publisher.ts'
import { Mirror } from './mirror.ts'
import { createRebalancer } from './rebalancer.ts'
import { RewindWatch } from './rewind-watch.ts'
import type { StandingAlarms } from './standing-alarms.ts'

export type ServeGroupOptions = {
  readonly group: GroupName
  readonly keys: GroupKeys
  readonly store: Store
  readonly broadcast: Broadcast
  readonly clock: Clock
  readonly random: Random
  /** Includes `alarms`. */
  readonly telemetry: Telemetry
  readonly alarms: StandingAlarms
  readonly orderOf: PreferenceOrderFactory
  /** For a new group; an existing one must agree on partitions, TTL and fenced. */
  readonly settings: GroupSettings
}

export type ServedGroup = {
  readonly service: GroupService
  /** True while this process is the group's elected rebalancer. */
  isLeader(): boolean
  /** The map as this process would publish it; null while the group is unknown. Read only. */
  map(): OwnershipMap | null
  close(): Promise<void>
}

/** How old the map may be before reads say so is measured against this pulse. */
const PULSE_MS = 1000
const COMMIT_TIMEOUT_MS = 2000

/** @throws TenureError as `ensureGroup` does. */
export async function serveGroup(options: ServeGroupOptions): Promise<ServedGroup> {
  const { group, keys, store, broadcast, clock, random, telemetry, orderOf, settings } = options
  await ensureGroup({ store, keys, clock, group, settings })
  const mirror = new Mirror({ group, keys, store, clock, random, telemetry, pulseMs: PULSE_MS })
  await mirror.ready
  const committer = new Committer({ store, keys, clock, timeoutMs: COMMIT_TIMEOUT_MS })
  const shared = { group, keys, store, clock, random, telemetry, mirror, committer, orderOf }
  const rebalancer = createRebalancer(shared)
  const ageMs = () => clock.monotonicMs() - (mirror.currentAtMs ?? clock.monotonicMs())
  const publisher = createMapPublisher({
    ...{ group, broadcast, clock, state: mirror.state, telemetry, ageMs },
    publisherId: random.operationId(),
  })
  const endings = [
    mirror.subscribe({ changed: (change) => publisher.onChange(change), rewound: () => {} }),
    rebalancer.onLeader((leading) => publisher.setLeader(leading)),
  ]
  const rewinds = new RewindWatch(shared)
  const service = createGroupService({
    ...shared,
    highestIncarnation: () => rewinds.highestKnown(),
    isServing: (partition, position) => isServed(publisher, partition, position),
    // A rewound store is told of until the incarnation rises, and not a moment longer.
    alarms: () => [
      ...options.alarms.of(group).filter((alarm) => !alarm.startsWith('store-rewound')),
      ...rewinds.alarms(),
    ],
  })
  return {
    service,
    isLeader: () => rebalancer.isLeader(),
    map: () => publisher.map(),
    close: async () => {
      for (const end of endings) end()
      rewinds.close()
      service.close()
      publisher.close()
      await rebalancer.close()
      mirror.close()
    },
  }
}

/** Whether the owner says, over the broadcast, that it serves this very grant. */
function isServed(
  publisher: MapPublisher,
  partition: PartitionId,
  { incarnation, generation }: Position,
): boolean {
  const view = publisher.map()?.view(partition)
  return (
    view?.serving === true && view.incarnation === incarnation && view.generation === generation
  )
}
