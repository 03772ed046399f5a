/**
 * A group as HTTP and the CLI's server see it: reads from the mirror, operators' changes to the store.
 * One service per group and process; `createGroups` puts several under their names.
 */
import type { GroupName, PartitionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { PreferenceOrderFactory } from '../core/preference-order.ts'
import type { Position } from '../core/token.ts'
import type { Clock } from '../ports/clock.ts'
import type { GroupAdmin, Groups, GroupView } from '../ports/group-access.ts'
import type { Random } from '../ports/random.ts'
import type { Store } from '../ports/store.ts'
import { MirroredAdmin } from './group-admin.ts'
import { GroupChanges } from './group-changes.ts'
import { MirroredGroup } from './group-view.ts'
import type { Mirror } from './mirror.ts'

export type GroupServiceOptions = {
  readonly group: GroupName
  readonly keys: GroupKeys
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly mirror: Mirror
  readonly orderOf: PreferenceOrderFactory
  /** What the owner said last over the broadcast. Default: nobody said anything, all serve. */
  readonly isServing?: (partition: PartitionId, position: Position) => boolean
  /** The highest incarnation that this process knows of, beyond what the records show. */
  readonly highestIncarnation?: () => number
  /** Alarms that stand in this process. */
  readonly alarms?: () => readonly string[]
}

export interface GroupService {
  readonly group: GroupName
  /** False until the group's settings are known. */
  isKnown(): boolean
  readonly view: GroupView
  readonly admin: GroupAdmin
  /** Stops following the map; the mirror is the caller's. */
  close(): void
}

export function createGroupService(options: GroupServiceOptions): GroupService {
  const { group, keys, store, clock, random, mirror, orderOf } = options
  const { isServing = () => true, alarms = () => [], highestIncarnation = () => 0 } = options
  const view = new MirroredGroup({ group, mirror, clock, orderOf, isServing, alarms })
  const changes = new GroupChanges({ store, clock, mirror, never: keys.never })
  const admin = new MirroredAdmin({
    ...{ keys, state: mirror.state, clock, random, changes, highestIncarnation },
  })
  return {
    group,
    isKnown: () => mirror.state.config !== null,
    view,
    admin,
    close: () => view.close(),
  }
}

/** The groups of this process; one whose settings are not known yet is not there. */
export function createGroups(services: Iterable<GroupService>): Groups {
  const byName = new Map([...services].map((service) => [service.group as string, service]))
  return {
    names: () => [...byName.keys()].filter((name) => byName.get(name)?.isKnown()).sort(),
    find: (name) => {
      const service = byName.get(name)
      return service?.isKnown() ? { view: service.view, admin: service.admin } : null
    },
  }
}
