/**
 * `tenure serve`: for each group a mirror, a rebalancer that campaigns, a publisher of the map and the
 * operators' service; one HTTP listener over all. With the store away it goes on answering reads and
 * says how old they are.
 *
 *   open groups → listen → (elected now and then) → interrupted: listener, rebalancers, connections close
 */
import type { TenureConfig } from '../cli/tenure-config.ts'
import type { GroupName } from '../core/ids.ts'
import { groupName } from '../core/ids.ts'
import { groupKeys } from '../core/keys.ts'
import { combineTelemetry } from '../host/combine-telemetry.ts'
import { createLogTelemetry } from '../host/log-telemetry.ts'
import { createLogger } from '../host/logger.ts'
import { createMetricsTelemetry, type MetricsTelemetry } from '../host/metrics-telemetry.ts'
import { createHttpServer } from '../http/http-server.ts'
import type { Broadcast } from '../ports/broadcast.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { Committer } from '../runtime/committer.ts'
import { reportConnection } from '../runtime/create-worker.ts'
import { createGroupService, createGroups, type GroupService } from '../runtime/group-service.ts'
import { ensureGroup } from '../runtime/group-setup.ts'
import { createMapPublisher } from '../runtime/map-publisher.ts'
import { Mirror } from '../runtime/mirror.ts'
import { createRebalancer } from '../runtime/rebalancer.ts'
import { RewindWatch } from '../runtime/rewind-watch.ts'
import { createStandingAlarms, type StandingAlarms } from '../runtime/standing-alarms.ts'
import { clock, orderOf, random, shareBroadcast, shareStore } from './connections.ts'
import { packageVersion } from './package-version.ts'

/** How old the map may be before reads say so is measured against this pulse. */
const PULSE_MS = 1000
const COMMIT_TIMEOUT_MS = 2000

type ServedGroup = { readonly service: GroupService; close(): Promise<void> }

/** Resolves with the exit code once everything is closed. */
export async function runServe(config: TenureConfig, interrupted: AbortSignal): Promise<number> {
  const { level, format } = config.log
  const logger = createLogger({
    level,
    ...(format === 'auto' ? {} : { pretty: format === 'pretty' }),
  })
  const metrics = createMetricsTelemetry({ version: packageVersion() })
  const alarms = createStandingAlarms(clock)
  const telemetry = combineTelemetry(createLogTelemetry(logger), metrics, alarms)
  const store = await shareStore(config.etcd)
  const broadcast = await shareBroadcast(config.nats)
  const reporting = reportConnection(broadcast.value, telemetry)
  const served: ServedGroup[] = []
  try {
    for (const name of config.groups) {
      const group = groupName(name)
      const adapters = { store: store.value, broadcast: broadcast.value }
      served.push(await serveGroup(group, config, { ...adapters, telemetry, metrics, alarms }))
    }
    const server = await createHttpServer({
      groups: createGroups(served.map(({ service }) => service)),
      metrics,
      clock,
      telemetry,
      access: { bearerToken: config.http.token ?? undefined },
      host: config.http.host,
      port: config.http.port,
      readiness: () => readinessOf(served),
      logger,
    })
    const { url } = await server.listen()
    logger.info({ event: 'listening', url, groups: config.groups }, `listening on ${url}`)
    await aborted(interrupted)
    await server.close()
    return 0
  } finally {
    reporting.close()
    await Promise.all(served.map((group) => group.close()))
    await Promise.all([store.release(), broadcast.release()])
  }
}

async function serveGroup(
  group: GroupName,
  config: TenureConfig,
  parts: {
    readonly store: Store
    readonly broadcast: Broadcast
    readonly telemetry: Telemetry
    readonly metrics: MetricsTelemetry
    readonly alarms: StandingAlarms
  },
): Promise<ServedGroup> {
  const { store, broadcast, telemetry, metrics, alarms } = parts
  const keys = groupKeys(config.keyPrefix, group)
  await ensureGroup({ store, keys, clock, group, settings: config.settings })
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
    isServing: (partition, { incarnation, generation }) => {
      const view = publisher.map()?.view(partition)
      return (
        view?.serving === true && view.incarnation === incarnation && view.generation === generation
      )
    },
    // A rewound store is told of until the incarnation rises, and not a moment longer.
    alarms: () => [
      ...alarms.of(group).filter((alarm) => !alarm.startsWith('store-rewound')),
      ...rewinds.alarms(),
    ],
  })
  endings.push(metrics.registerGaugeSource(group, () => gaugesOf(service)))
  return {
    service,
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

function gaugesOf({ view }: GroupService) {
  const { owned, vacant, notServing, moving, halted, members } = view.summary()
  const { version, ageMs, stale } = view.freshness()
  return {
    partitions: { owned, vacant, notServing, moving, halted },
    members,
    map: { ...version, ageMs, stale },
  }
}

function readinessOf(served: readonly ServedGroup[]): { ready: boolean; reason: string } {
  const unknown = served.find(({ service }) => !service.isKnown())
  if (unknown === undefined) return { ready: true, reason: 'every group is known' }
  return { ready: false, reason: `group ${unknown.service.group} has no settings in the store` }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
