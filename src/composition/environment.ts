/**
 * Where a process's servers are and where it reports: what the caller gives, else the same settings that
 * the CLI reads (`TENURE_*`, `tenure.config.json`, a running `tenure dev` in this folder).
 */
import { existsSync, readFileSync } from 'node:fs'
import { resolveConfiguration } from '../cli/configuration.ts'
import { DEFAULT_CONFIGURATION_FILE } from '../cli/load-configuration.ts'
import type { TenureConfig } from '../cli/tenure-config.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { EtcdStoreOptions } from '../etcd/etcd-store.ts'
import { createLogTelemetry } from '../host/log-telemetry.ts'
import { createLogger } from '../host/logger.ts'
import type { NatsOptions } from '../nats/nats-link.ts'
import type { Telemetry } from '../ports/telemetry.ts'

export type ConnectionOptions = {
  /** Default: TENURE_ETCD_ENDPOINTS and its kin, else a server on this machine. */
  readonly etcd?: EtcdStoreOptions
  readonly nats?: NatsOptions
  /** Where groups live in etcd. Default `/tenure/v1/`. */
  readonly keyPrefix?: string
  /** Receives every transition. Default: log lines on standard error, TENURE_LOG_LEVEL. */
  readonly telemetry?: Telemetry
}

/** @throws TenureError `invalid-config`, one line per problem, when the environment is unsound. */
export function readEnvironment(): TenureConfig {
  const path = process.env['TENURE_CONFIG'] ?? DEFAULT_CONFIGURATION_FILE
  const resolution = resolveConfiguration({
    flags: new Map(),
    variables: process.env,
    file: existsSync(path) ? { path, text: readFileSync(path, 'utf8') } : null,
    dev: null,
    readFile: (name) => readFileSync(name, 'utf8'),
  })
  if (resolution.ok) return resolution.config
  throw createTenureError('invalid-config', resolution.problems.join('\n'))
}

export function logTelemetry(config: TenureConfig): Telemetry {
  const { level, format } = config.log
  const pretty = format === 'auto' ? {} : { pretty: format === 'pretty' }
  return createLogTelemetry(createLogger({ level, ...pretty }))
}
