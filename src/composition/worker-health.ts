/**
 * What a worker process tells those who watch over it: log lines, and on a listener of its own, where one
 * is asked for, liveness, readiness and metrics.
 *
 *   not ready (starting) → ready while the session lives ⇄ not ready (no live session)
 *     → not ready for good from the first SIGTERM or SIGINT on, while it drains
 *
 * The listener opens before the worker starts and closes after it is done, so a worker that waits for
 * etcd, or that drains, is seen to be alive.
 */
import type { TenureConfig } from '../cli/tenure-config.ts'
import { combineTelemetry } from '../host/combine-telemetry.ts'
import { createLogTelemetry } from '../host/log-telemetry.ts'
import { createLogger } from '../host/logger.ts'
import { createMetricsTelemetry, type GaugeNumbers } from '../host/metrics-telemetry.ts'
import type { Readiness } from '../http/health-routes.ts'
import { createHealthServer } from '../http/health-server.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { Worker } from '../runtime/worker-options.ts'

export type WorkerHealth = {
  /** Receives the worker's transitions. */
  readonly telemetry: Telemetry
  /** From now on readiness and metrics speak of this worker. */
  follow(worker: Worker): void
  close(): Promise<void>
}

/** Rejects when a listener is asked for and its address cannot be had. */
export async function openWorkerHealth(
  config: TenureConfig,
  interrupted: AbortSignal,
): Promise<WorkerHealth> {
  const { level, format } = config.log
  const pretty = format === 'auto' ? {} : { pretty: format === 'pretty' }
  const logger = createLogger({ level, ...pretty })
  const log = createLogTelemetry(logger)
  const { host, port } = config.health
  if (port === null) return { telemetry: log, follow: () => {}, close: async () => {} }

  const metrics = createMetricsTelemetry()
  let worker: Worker | null = null
  const readiness = () => readinessOf(worker, interrupted)
  const server = createHealthServer({ metrics, readiness, host, port })
  const listening = await server.listen()
  logger.info({ event: 'listening', host, port: listening }, `health on ${host}:${listening}`)
  return {
    telemetry: combineTelemetry(log, metrics),
    follow(started) {
      worker = started
      metrics.registerGaugeSource(started.group, () => gaugesOf(started))
    },
    close: () => server.close(),
  }
}

function readinessOf(worker: Worker | null, interrupted: AbortSignal): Readiness {
  if (interrupted.aborted) return { ready: false, reason: 'this worker is stopping' }
  if (worker === null) return { ready: false, reason: 'this worker is starting' }
  if (worker.deadlineInMs() === 0) return { ready: false, reason: 'there is no live session' }
  return { ready: true, reason: 'the session lives' }
}

function gaugesOf(worker: Worker): GaugeNumbers {
  const held = worker.partitions()
  return {
    member: {
      name: worker.member,
      owned: held.length,
      notServing: held.filter(({ status }) => status !== 'serving').length,
      workInFlight: held.reduce((sum, { inFlight }) => sum + inFlight, 0),
    },
  }
}
