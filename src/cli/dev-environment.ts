/**
 * `.tenure/dev.json`: what a running `tenure dev` tells other commands started in the same folder. It
 * is a hint of the weakest kind: any flag, variable or file setting wins over it, and a file that a
 * killed environment left behind (its `pid` is gone) counts as absent.
 */
import type { CliContext } from './context.ts'

export const DEV_ENVIRONMENT_FILE = '.tenure/dev.json'

export type DevEnvironment = {
  /** Where its `serve` process answers. */
  readonly url: string
  readonly group: string
  readonly etcd: readonly string[]
  readonly nats: readonly string[]
  /** The process that owns the environment; null when it does not say. */
  readonly pid: number | null
}

export function readDevEnvironment(context: CliContext): DevEnvironment | null {
  let text: string
  try {
    text = context.readFile(DEV_ENVIRONMENT_FILE)
  } catch {
    return null
  }
  const environment = parseDevEnvironment(text)
  if (environment === null) return null
  if (environment.pid !== null && !context.isProcessAlive(environment.pid)) return null
  return environment
}

/** Null for text that is no such description, as a half-written file is. */
function parseDevEnvironment(text: string): DevEnvironment | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null) return null
  const { url, group, etcd, nats, pid } = value as Readonly<Record<string, unknown>>
  if (typeof url !== 'string' || typeof group !== 'string') return null
  if (!isTexts(etcd) || !isTexts(nats)) return null
  return { url, group, etcd, nats, pid: typeof pid === 'number' ? pid : null }
}

/** In the form of a configuration layer: values by setting name. */
export function devSettings(environment: DevEnvironment): Readonly<Record<string, unknown>> {
  return {
    url: environment.url,
    groups: [environment.group],
    'etcd.endpoints': environment.etcd,
    'nats.servers': environment.nats,
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
