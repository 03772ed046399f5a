/** `tenure worker`: runs a user's module, or the demo's worker in the folder of a running `tenure dev`. */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { WorkerStart } from '../cli/commands.ts'
import { DEV_ENVIRONMENT_FILE } from '../cli/dev-environment.ts'
import type { TenureConfig } from '../cli/tenure-config.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Worker } from '../runtime/worker-options.ts'
import { logTelemetry } from './environment.ts'
import { type StartWorkerOptions, startWorker } from './start-worker.ts'

/** Exit code 0 after a drain; 70 when the member was evicted. */
export async function runWorker(
  config: TenureConfig,
  start: WorkerStart,
  interrupted: AbortSignal,
): Promise<number> {
  const worker = await (start.script === null
    ? startDemo(config)
    : startScript(config, start.script))
  // Signals that came before the worker did.
  if (interrupted.aborted) void worker.stop().catch(() => {})
  await worker.done
  return 0
}

async function startScript(config: TenureConfig, script: string): Promise<Worker> {
  const options = optionsOf(script, await import(pathToFileURL(script).href))
  const [group] = config.groups
  return startWorker({
    ...shared(config),
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

async function startDemo(config: TenureConfig): Promise<Worker> {
  const { startDemoWorker } = await import('../dev/demo-worker.ts')
  const { ledger } = JSON.parse(readFileSync(DEV_ENVIRONMENT_FILE, 'utf8')) as { ledger: string }
  const [group = ''] = config.groups
  return startDemoWorker({
    ...shared(config),
    group,
    ledgerUrl: ledger,
    natsServers: config.nats.servers,
  })
}

function shared(config: TenureConfig) {
  const { etcd, nats, keyPrefix, settings, worker } = config
  return { etcd, nats, keyPrefix, settings, ...worker, telemetry: logTelemetry(config) }
}
