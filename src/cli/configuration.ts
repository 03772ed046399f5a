/**
 * Resolves the configuration from its layers, strongest first:
 *
 *   flag > TENURE_* variable > file > running dev environment > NATS_URL, ETCDCTL_ENDPOINTS > default
 *
 * Pure but for `readFile`, which is passed in. Every problem found is reported, each as one line that
 * names the setting, where it was written and what to write instead. Secrets are never repeated.
 */
import { newGroupConfig } from '../core/group-config.ts'
import { isTenureError } from '../core/tenure-error.ts'
import type { Setting } from './setting.ts'
import {
  describeDuration,
  type ReadValue,
  readJson,
  readText,
  type SettingValue,
} from './setting-kinds.ts'
import { OTHER_VARIABLES, SETTINGS } from './settings.ts'
import { didYouMean } from './suggestion.ts'
import { buildTenureConfig, type TenureConfig } from './tenure-config.ts'

type OriginLayer = 'flag' | 'variable' | 'file' | 'dev' | 'foreign' | 'default'

/** Where a value was written: `where` is a flag, a variable's name or a file's path. */
export type Origin = { readonly layer: OriginLayer; readonly where: string }

type Variables = Readonly<Record<string, string | undefined>>

export type ConfigurationSources = {
  /** Text of each flag that was given, by setting name. */
  readonly flags: ReadonlyMap<string, string>
  readonly variables: Variables
  readonly file: { readonly path: string; readonly text: string } | null
  /** What `.tenure/dev.json` of a running `tenure dev` says, in the form of the file. */
  readonly dev: {
    readonly path: string
    readonly values: Readonly<Record<string, unknown>>
  } | null
  /** Text of a file that a setting names. @throws whatever says why it cannot be read. */
  readonly readFile: (path: string) => string
}

export type ResolvedSetting = {
  readonly setting: Setting
  readonly value: SettingValue | null
  readonly origin: Origin
}

export type Resolution =
  | {
      readonly ok: true
      readonly config: TenureConfig
      readonly settings: readonly ResolvedSetting[]
    }
  | { readonly ok: false; readonly problems: readonly string[] }

export function resolveConfiguration(sources: ConfigurationSources): Resolution {
  const problems: string[] = unknownVariables(sources.variables)
  const file = flattenFile(sources, problems)
  const resolved = SETTINGS.map((setting) => resolveSetting(setting, sources, file, problems))
  const values = new Map<string, SettingValue>()
  const origins = new Map<string, Origin>()
  for (const { setting, value, origin } of resolved) {
    if (value === null) continue
    values.set(setting.name, value)
    origins.set(setting.name, origin)
  }
  readSecretFiles(values, origins, sources.readFile, problems)
  checkTogether(values, origins, problems)
  if (problems.length > 0) return { ok: false, problems }
  return { ok: true, config: buildTenureConfig(values), settings: resolved }
}

/** The value as it would be written, credentials hidden, for `tenure config` and messages. */
export function displayValue(setting: Setting, value: SettingValue | null): string {
  if (value === null) return ''
  if (setting.secret) return '********'
  if (setting.kind.type === 'duration' && typeof value === 'number') return describeDuration(value)
  return (Array.isArray(value) ? value.join(',') : String(value)).replace(
    /(\/\/)[^@/\s,]+@/g,
    '$1********@',
  )
}

export function describeOrigin(origin: Origin): string {
  switch (origin.layer) {
    case 'flag':
      return `flag ${origin.where}`
    case 'variable':
    case 'foreign':
      return `variable ${origin.where}`
    case 'file':
      return `file ${origin.where}`
    case 'dev':
      return `dev environment ${origin.where}`
    case 'default':
      return 'default'
    default:
      return origin.layer satisfies never
  }
}

type FlatFile = ReadonlyMap<string, unknown>

function resolveSetting(
  setting: Setting,
  sources: ConfigurationSources,
  file: FlatFile,
  problems: string[],
): ResolvedSetting {
  const { name, kind, variable, foreignVariable } = setting
  const flagName = setting.flag?.split(' ')[0] ?? ''
  const candidates: readonly (readonly [Origin, unknown, 'text' | 'json'])[] = [
    [{ layer: 'flag', where: flagName }, sources.flags.get(name), 'text'],
    [{ layer: 'variable', where: variable }, ownVariable(setting, sources.variables), 'text'],
    [{ layer: 'file', where: sources.file?.path ?? '' }, file.get(name), 'json'],
    [{ layer: 'dev', where: sources.dev?.path ?? '' }, sources.dev?.values[name], 'json'],
    [
      { layer: 'foreign', where: foreignVariable ?? '' },
      foreignVariable === null ? undefined : sources.variables[foreignVariable] || undefined,
      'text',
    ],
  ]
  for (const [origin, raw, form] of candidates) {
    if (raw === undefined) continue
    const read: ReadValue = form === 'text' ? readText(kind, String(raw)) : readJson(kind, raw)
    if (read.ok) return { setting, value: read.value, origin }
    const shown = setting.secret ? 'this value' : hideCredentials(JSON.stringify(raw))
    problems.push(`${name} (${describeOrigin(origin)}): ${shown} is refused: write ${read.wanted}`)
    return { setting, value: null, origin }
  }
  return { setting, value: setting.byDefault, origin: { layer: 'default', where: '' } }
}

function hideCredentials(text: string): string {
  return text.replace(/[^\s,"]*@/g, '********@')
}

/** An empty variable counts as not set, as manifests like to leave them. */
function ownVariable(setting: Setting, variables: Variables): string | undefined {
  const text = variables[setting.variable]
  if (text === undefined || text === '' || isServiceLink(setting.variable, text)) return undefined
  return text
}

/**
 * Kubernetes gives every pod variables for each Service of its namespace: a Service `tenure` makes
 * TENURE_SERVICE_HOST and TENURE_PORT_7300_TCP, one called `tenure-http` even a TENURE_HTTP_PORT.
 */
function isServiceLink(name: string, text: string): boolean {
  return /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP)/.test(name) || /^(tcp|udp):\/\//.test(text)
}

function unknownVariables(variables: Variables): string[] {
  const known = new Set([
    ...SETTINGS.map((setting) => setting.variable),
    ...Object.keys(OTHER_VARIABLES),
  ])
  return Object.entries(variables)
    .filter(([name, text]) => name.startsWith('TENURE_') && !known.has(name) && text !== undefined)
    .filter(([name, text]) => !isServiceLink(name, text ?? ''))
    .map(([name]) => {
      const remedy = didYouMean(name, known, 'unset it, or see `tenure config` for the known ones')
      return `variable ${name} is no setting of Tenure: ${remedy}`
    })
}

function flattenFile(sources: ConfigurationSources, problems: string[]): FlatFile {
  const flat = new Map<string, unknown>()
  if (sources.file === null) return flat
  const { path, text } = sources.file
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    problems.push(`file ${path} is not JSON: ${jsonFault(error)}: correct it there`)
    return flat
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    problems.push(`file ${path} must hold one JSON object: put the settings between { and }`)
    return flat
  }
  const known = new Set(SETTINGS.map((setting) => setting.name))
  const walk = (value: object, prefix: string) => {
    for (const [key, item] of Object.entries(value)) {
      const name = `${prefix}${key}`
      if (known.has(name)) flat.set(name, item)
      else if (isSection(name) && typeof item === 'object' && item !== null) walk(item, `${name}.`)
      else if (name !== '$schema') problems.push(unknownKey(path, name, known))
    }
  }
  walk(parsed, '')
  return flat
}

function unknownKey(path: string, name: string, known: ReadonlySet<string>): string {
  if (isSection(name)) return `file ${path}: "${name}" must be an object: write "${name}": { … }`
  return `file ${path}: unknown setting "${name}": ${didYouMean(
    name,
    known,
    'remove it, or see `tenure config` for the known ones',
  )}`
}

function isSection(name: string): boolean {
  return SETTINGS.some((setting) => setting.name.startsWith(`${name}.`))
}

/** V8's message quotes the text around the fault, which may be a secret: only the place is kept. */
function jsonFault(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return /position \d+/.exec(message)?.[0].replace('position', 'fault at character') ?? 'cut short'
}

const SECRET_FILES = [
  ['etcd.password', 'etcd.passwordFile'],
  ['nats.password', 'nats.passwordFile'],
  ['nats.token', 'nats.tokenFile'],
  ['http.token', 'http.tokenFile'],
] as const

const STRENGTH: readonly OriginLayer[] = ['flag', 'variable', 'file', 'dev', 'foreign', 'default']

/** Replaces each secret's file by its content; the stronger layer of the two wins. */
function readSecretFiles(
  values: Map<string, SettingValue>,
  origins: Map<string, Origin>,
  readFile: (path: string) => string,
  problems: string[],
): void {
  for (const setting of SETTINGS) {
    const path = values.get(setting.name)
    const origin = origins.get(setting.name)
    if (setting.kind.type !== 'file' || typeof path !== 'string' || origin === undefined) continue
    const label = `${setting.name} (${describeOrigin(origin)})`
    const secret = SECRET_FILES.find(([, file]) => file === setting.name)?.[0]
    const content = contentOf(path, label, readFile, problems)
    if (secret === undefined || content === null) continue
    const plain = origins.get(secret)
    const order = plain === undefined ? 1 : strength(plain) - strength(origin)
    if (order === 0) problems.push(`${label}: ${secret} is set there too: keep one of the two`)
    else if (content === '') problems.push(`${label}: ${path} is empty: put the secret into it`)
    else if (order > 0) values.set(secret, content)
  }
}

function strength(origin: Origin): number {
  return STRENGTH.indexOf(origin.layer)
}

function contentOf(
  path: string,
  label: string,
  readFile: (path: string) => string,
  problems: string[],
): string | null {
  try {
    return readFile(path).trim()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    problems.push(`${label}: cannot read ${path} (${code}): correct the path or its permissions`)
    return null
  }
}

/** Who sets the first needs the second. */
const NEEDS = [
  ['etcd.tls.cert', 'etcd.tls.key'],
  ['etcd.tls.key', 'etcd.tls.cert'],
  ['etcd.tls.cert', 'etcd.tls.ca'],
  ['etcd.username', 'etcd.password'],
  ['etcd.password', 'etcd.username'],
  ['nats.tls.cert', 'nats.tls.key'],
  ['nats.tls.key', 'nats.tls.cert'],
  ['nats.user', 'nats.password'],
  ['nats.password', 'nats.user'],
] as const

function checkTogether(
  values: ReadonlyMap<string, SettingValue>,
  origins: ReadonlyMap<string, Origin>,
  problems: string[],
): void {
  for (const [name, needed] of NEEDS) {
    const origin = origins.get(name)
    if (origin === undefined || origin.layer === 'default' || values.has(needed)) continue
    problems.push(`${name} (${describeOrigin(origin)}) is of no use alone: set ${needed} too`)
  }
  if (problems.length > 0) return
  try {
    newGroupConfig(buildTenureConfig(values).settings)
  } catch (error) {
    if (!isTenureError(error, 'invalid-config')) throw error
    const name = `settings.${String(error.details['setting'])}`.replace(/Ms$/, '')
    const origin = origins.get(name)
    const where = origin === undefined ? '' : ` (${describeOrigin(origin)})`
    problems.push(`${name}${where}: ${error.message}`)
  }
}
