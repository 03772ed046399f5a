/**
 * What runs in the processes of a test cluster: worker, `serve`, observer. Each is put together by the
 * runtime itself, exactly as in production, over the connections of one life.
 */
import type { GroupSettings } from '../core/group-config.ts'
import type { GroupName } from '../core/ids.ts'
import { memberName } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { OwnershipMap } from '../core/ownership-map.ts'
import type { GroupAdmin, GroupView } from '../ports/group-access.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { createRingOrder } from '../ring/hashring-order.ts'
import { createWorker, reportConnection } from '../runtime/create-worker.ts'
import type { GroupService } from '../runtime/group-service.ts'
import { createObserver } from '../runtime/observer.ts'
import type { Observer } from '../runtime/observer-types.ts'
import { serveGroup } from '../runtime/serve-group.ts'
import { createStandingAlarms } from '../runtime/standing-alarms.ts'
import type { Worker, WorkerOptions } from '../runtime/worker-options.ts'
import type { Life, Running } from './cluster-process.ts'

/** The group that a cluster's processes share. */
export type ClusterGroup = {
  readonly group: GroupName
  readonly keys: GroupKeys
  readonly settings: GroupSettings
}

/**
 * What `startWorker` takes, without what concerns real processes. `member` defaults to the process's
 * name, `settings` to the cluster's.
 */
export type TestWorkerOptions<Cursor> = Omit<WorkerOptions<Cursor>, 'group' | 'signals' | 'stop'>

export type ServeParts = {
  readonly service: GroupService
  readonly view: GroupView
  readonly admin: GroupAdmin
  /** True while this process is the group's elected rebalancer. */
  isLeader(): boolean
  /** The map as this process would publish it; null while the group is unknown. Read only. */
  map(): OwnershipMap | null
}

/** Rings depend on names alone, so all clusters of this process share them. */
const orderOf = createRingOrder()

export async function runWorker<Cursor>(
  { group, keys, settings }: ClusterGroup,
  name: string,
  options: TestWorkerOptions<Cursor>,
  life: Life,
): Promise<Running<{ readonly worker: Worker }>> {
  const { store, broadcast, clock, random, telemetry } = life
  const worker = await createWorker<Cursor>({
    ...options,
    ...{ group, keys, store, broadcast, clock, random, telemetry, orderOf },
    member: memberName(options.member ?? name),
    settings: options.settings ?? settings,
    close: () => closeConnections(life),
  })
  return {
    parts: { worker },
    done: worker.done,
    stop: () => worker.stop(),
    crash: () => {
      worker.stop({ force: true }).catch(() => {})
    },
  }
}

export async function runServe(cluster: ClusterGroup, life: Life): Promise<Running<ServeParts>> {
  const { store, broadcast, clock, random } = life
  const alarms = createStandingAlarms(clock)
  const telemetry: Telemetry = {
    record: (event) => {
      life.telemetry.record(event)
      alarms.record(event)
    },
  }
  const reporting = reportConnection(broadcast, telemetry)
  const connections = { store, broadcast, clock, random, telemetry, alarms, orderOf }
  const served = await serveGroup({ ...cluster, ...connections })
  const { service } = served
  return {
    parts: {
      service,
      view: service.view,
      admin: service.admin,
      isLeader: () => served.isLeader(),
      map: () => served.map(),
    },
    done: null,
    stop: async () => {
      reporting.close()
      await served.close()
      await closeConnections(life)
    },
    crash: () => {},
  }
}

export function runObserver(
  { group }: ClusterGroup,
  options: { readonly staleAfterMs?: number },
  life: Life,
): Running<{ readonly observer: Observer }> {
  const { broadcast, clock, random, telemetry } = life
  const observer = createObserver({ group, broadcast, clock, random, telemetry, ...options })
  return {
    parts: { observer },
    done: null,
    stop: async () => {
      observer.close()
      await closeConnections(life)
    },
    crash: () => {},
  }
}

async function closeConnections({ store, broadcast }: Life): Promise<void> {
  await Promise.all([store.close(), broadcast.close()])
}
