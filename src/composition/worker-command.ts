/** `tenure worker`: runs a user's module, or the demo's worker in the folder of a running `tenure dev`. */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { WorkerStart } from '../cli/commands.ts'
import { DEV_ENVIRONMENT_FILE } from '../cli/dev-environment.ts'
import type { TenureConfig } from '../cli/tenure-config.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { Worker } from '../runtime/worker-options.ts'
import { type StartWorkerOptions, startWorker } from './start-worker.ts'
import { openWorkerHealth } from './worker-health.ts'

/** Exit code 0 after a drain; 70 when the member was evicted. */
export async function runWorker(
  config: TenureConfig,
  start: WorkerStart,
  interrupted: AbortSignal,
): Promise<number> {
  const health = await openWorkerHealth(config, interrupted)
  try {
    const { telemetry } = health
    const worker = await (start.script === null
      ? startDemo(config, telemetry)
      : startScript(config, telemetry, start.script))
    health.follow(worker)
    // Signals that came before the worker did.
    if (interrupted.aborted) void worker.stop().catch(() => {})
    await worker.done
    return 0
  } finally {
    // Last, so that a drain is not taken for a process that hangs.
    await health.close()
  }
}

async function startScript(
  config: TenureConfig,
  telemetry: Telemetry,
  script: string,
): Promise<Worker> {
  const options = optionsOf(script, await import(pathToFileURL(script).href))
  const [group] = config.groups
  return startWorker({
    ...shared(config, telemetry),
    ...(group === undefined ? {} : { group }),
    ...options,
  } as StartWorkerOptions<unknown>)
}

/** @throws TenureError `invalid-argument` when the module exports no options. */
function optionsOf(script: string, module: unknown): object {
  const { default: byDefault, worker } = module as { default?: unknown; worker?: unknown }
  const options = worker ?? byDefault
  if (typeof options === 'object' && options !== null) return options
  throw createTenureError(
    'invalid-argument',
    `${script} must export the options of startWorker, as "worker" or by default`,
  )
}

async function startDemo(config: TenureConfig, telemetry: Telemetry): Promise<Worker> {
  const { startDemoWorker } = await import('../dev/demo-worker.ts')
  const { ledger } = JSON.parse(readFileSync(DEV_ENVIRONMENT_FILE, 'utf8')) as { ledger: string }
  const [group = ''] = config.groups
  return startDemoWorker({
    ...shared(config, telemetry),
    group,
    ledgerUrl: ledger,
    natsServers: config.nats.servers,
  })
}

function shared(config: TenureConfig, telemetry: Telemetry) {
  const { etcd, nats, keyPrefix, settings, worker } = config
  return { etcd, nats, keyPrefix, settings, ...worker, telemetry }
}
