/**
 * `tenure worker`: runs a user's module, or the demo's worker in the folder of a running `tenure dev`.
 *
 *   module loaded ──▶ worker works ──▶ drained ──▶ the module's `close`, at most CLOSE_MS ──▶ process ends
 *       └── refused, cannot start ───────────────▶
 *
 * What a module opens (streams, pools of connections) would keep the process up for ever, although its
 * work is over. So a module exports `close`, which is called once nothing of the worker runs any more;
 * and what is still open a moment later ends with the process, under the exit code that it has earned.
 */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { WorkerStart } from '../cli/commands.ts'
import { DEV_ENVIRONMENT_FILE } from '../cli/dev-environment.ts'
import type { TenureConfig } from '../cli/tenure-config.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { pause } from '../runtime/waiting.ts'
import type { Worker } from '../runtime/worker-options.ts'
import { clock } from './connections.ts'
import { type StartWorkerOptions, startWorker } from './start-worker.ts'
import { openWorkerHealth } from './worker-health.ts'

/** How long a module's `close` may take. */
const CLOSE_MS = 5000
/** By now a process without anything open has ended. */
const LINGER_MS = 1000

type WorkerModule = {
  readonly default?: unknown
  readonly worker?: unknown
  readonly close?: unknown
}

/** Exit code 0 after a drain; 70 when the member was evicted. */
export async function runWorker(
  config: TenureConfig,
  start: WorkerStart,
  interrupted: AbortSignal,
): Promise<number> {
  const health = await openWorkerHealth(config, interrupted)
  const { script } = start
  let module: WorkerModule = {}
  try {
    const { telemetry } = health
    if (script !== null) module = await import(pathToFileURL(script).href)
    try {
      const worker = await (script === null
        ? startDemo(config, telemetry)
        : startScript(config, telemetry, optionsOf(script, module)))
      health.follow(worker)
      // Signals that came before the worker did.
      if (interrupted.aborted) void worker.stop().catch(() => {})
      await worker.done
    } catch (error: unknown) {
      // The first failure is the one to tell.
      await closeModule(module).catch(() => {})
      throw error
    }
    await closeModule(module)
    return 0
  } finally {
    // Last, so that a drain is not taken for a process that hangs.
    await health.close()
    // Not referenced, so it holds up nothing: it fires only where something else does.
    setTimeout(() => process.exit(), LINGER_MS).unref()
  }
}

/** What it throws is the process's failure; that it takes too long is not. */
async function closeModule({ close }: WorkerModule): Promise<void> {
  if (typeof close !== 'function') return
  const over = new AbortController()
  try {
    await Promise.race([(async () => close())(), pause(clock, CLOSE_MS, over.signal)])
  } finally {
    over.abort()
  }
}

async function startScript(
  config: TenureConfig,
  telemetry: Telemetry,
  options: object,
): Promise<Worker> {
  const [group] = config.groups
  return startWorker({
    ...shared(config, telemetry),
    ...(group === undefined ? {} : { group }),
    ...options,
  } as StartWorkerOptions<unknown>)
}

/** @throws TenureError `invalid-argument` when the module exports no options. */
function optionsOf(script: string, { default: byDefault, worker }: WorkerModule): object {
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
