/** deploy/compose.yaml as Docker would see it: anchors and merges resolved, variables at their defaults. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { ContainerSpec, Probe } from './container.ts'
import { type Image, REPOSITORY } from './image.ts'

export type ComposeService = {
  readonly image: string
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly command: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck: {
    readonly test: readonly string[]
    readonly timeout: string
    readonly start_period: string
    readonly interval: string
  }
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly stop_grace_period: string
  readonly stop_signal?: string
  readonly read_only?: boolean
  readonly deploy?: { readonly replicas?: number }
}

export type ComposeFile = {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly volumes: Readonly<Record<string, unknown>>
}

export function readComposeFile(): ComposeFile {
  const text = readFileSync(join(REPOSITORY, 'deploy/compose.yaml'), 'utf8')
  return parse(text, withDefaults, { merge: true }) as ComposeFile
}

/** How Docker would run it; a service of the Tenure image has that image's entrypoint before its command. */
export function composeContainer(
  name: string,
  service: ComposeService,
  image: Image,
): ContainerSpec {
  const ofTenure = service.image.startsWith('tenure:')
  return {
    name,
    words: [...(ofTenure ? image.entrypoint : []), ...service.command],
    environment: { ...(ofTenure ? image.environment : {}), ...service.environment },
    startup: healthCheckOf(service),
    startupMs: durationMs(service.healthcheck.start_period),
    preStop: null,
    stopGraceMs: durationMs(service.stop_grace_period),
  }
}

function healthCheckOf({ healthcheck }: ComposeService): Probe {
  const [form, ...words] = healthcheck.test
  if (form !== 'CMD')
    throw new Error(`a health check through a shell: ${healthcheck.test.join(' ')}`)
  return { type: 'exec', words, timeoutMs: durationMs(healthcheck.timeout) }
}

/** `30s` or `1m`, as compose and Tenure's settings write it. */
export function durationMs(text: string): number {
  const [, amount, unit] = /^(\d+)(ms|s|m)$/.exec(text) ?? []
  const unitMs = { ms: 1, s: 1000, m: 60_000 }[unit ?? '']
  if (unitMs === undefined) throw new Error(`no duration that this test knows: ${text}`)
  return Number(amount) * unitMs
}

/** `${NAME:-default}` with no variable set; after parsing, as Docker does it. */
function withDefaults(_key: unknown, value: unknown): unknown {
  return typeof value === 'string' ? value.replace(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1') : value
}
