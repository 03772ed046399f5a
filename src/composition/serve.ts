/**
 * `tenure serve`: for each group a mirror, a rebalancer that campaigns, a publisher of the map and the
 * operators' service; one HTTP listener over all. With the store away it goes on answering reads and
 * says how old they are.
 *
 *   open groups → listen → (elected now and then) → interrupted: listener, rebalancers, connections close
 */
import type { TenureConfig } from '../cli/tenure-config.ts'
import { groupName } from '../core/ids.ts'
import { groupKeys } from '../core/keys.ts'
import { combineTelemetry } from '../host/combine-telemetry.ts'
import { createLogTelemetry } from '../host/log-telemetry.ts'
import { createLogger } from '../host/logger.ts'
import { createMetricsTelemetry } from '../host/metrics-telemetry.ts'
import { createHttpServer } from '../http/http-server.ts'
import { reportConnection } from '../runtime/create-worker.ts'
import { createGroups, type GroupService } from '../runtime/group-service.ts'
import { type ServedGroup, serveGroup } from '../runtime/serve-group.ts'
import { createStandingAlarms } from '../runtime/standing-alarms.ts'
import { aborted } from '../runtime/waiting.ts'
import { clock, orderOf, random, shareBroadcast, shareStore } from './connections.ts'
import { packageVersion } from './package-version.ts'

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
  const gauges: (() => void)[] = []
  try {
    for (const name of config.groups) {
      const group = groupName(name)
      const adapters = { store: store.value, broadcast: broadcast.value }
      const keys = groupKeys(config.keyPrefix, group)
      const { settings } = config
      const parts = { group, keys, clock, random, telemetry, alarms, orderOf, settings }
      const one = await serveGroup({ ...parts, ...adapters })
      served.push(one)
      gauges.push(metrics.registerGaugeSource(group, () => gaugesOf(one.service)))
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
    for (const end of gauges) end()
    await Promise.all(served.map((group) => group.close()))
    await Promise.all([store.release(), broadcast.release()])
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
