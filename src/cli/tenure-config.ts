/**
 * The checked configuration that every command gets, as plain data: what `serve`, `worker` and the
 * adapters are made from. Secrets are in it as plain text, so it is never printed as a whole.
 */
import type { DrainPolicy, GroupSettings } from '../core/group-config.ts'
import type { SettingValue } from './setting-kinds.ts'

/** Paths of PEM files; none at all asks for TLS with the system's authorities. */
type TlsFiles = {
  readonly caFile?: string
  readonly certFile?: string
  readonly keyFile?: string
}

export type TenureConfig = {
  readonly groups: readonly string[]
  /** Where operators' commands find `serve`, without a slash at the end. */
  readonly url: string
  /** Absent means not set, so that these parts are the options of the adapters as they stand. */
  readonly etcd: {
    /** `host:port`, `http://host:port` or `https://host:port`. */
    readonly endpoints: readonly string[]
    readonly tls?: TlsFiles
    readonly username?: string
    readonly password?: string
  }
  readonly nats: {
    /** Without credentials: those of `nats://user:password@host` are in the fields below. */
    readonly servers: readonly string[]
    readonly tls?: TlsFiles
    readonly user?: string
    readonly password?: string
    readonly token?: string
    readonly credsFile?: string
  }
  /** Begins and ends with a slash. */
  readonly keyPrefix: string
  /** What the worker's module leaves open is filled in by the runtime. */
  readonly worker: {
    readonly member?: string
    readonly address?: string
    readonly weight?: number
    readonly capacity?: number
    readonly zone?: string
  }
  readonly http: { readonly host: string; readonly port: number; readonly token: string | null }
  /** A worker's listener; port null: none. */
  readonly health: { readonly host: string; readonly port: number | null }
  readonly log: {
    readonly level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
    readonly format: 'auto' | 'json' | 'pretty'
  }
  /** Only what was set; the group, or the defaults of a new one, fills in the rest. */
  readonly settings: GroupSettings
}

/** Parsed values by setting name, defaults included, secrets read from their files. */
export type SettingValues = ReadonlyMap<string, SettingValue>

export function buildTenureConfig(values: SettingValues): TenureConfig {
  return {
    groups: list(values, 'groups'),
    url: text(values, 'url') ?? '',
    etcd: {
      endpoints: list(values, 'etcd.endpoints'),
      ...prune({
        tls: tlsFiles(values, 'etcd'),
        username: values.get('etcd.username'),
        password: values.get('etcd.password'),
      }),
    },
    nats: natsConnection(values),
    keyPrefix: text(values, 'keyPrefix') ?? '',
    worker: prune({
      member: values.get('member'),
      address: values.get('address'),
      weight: values.get('weight'),
      capacity: values.get('capacity'),
      zone: values.get('zone'),
    }),
    http: {
      host: text(values, 'http.host') ?? '',
      port: number(values, 'http.port') ?? 0,
      token: text(values, 'http.token'),
    },
    health: {
      host: text(values, 'health.host') ?? '',
      port: number(values, 'health.port') ?? null,
    },
    log: {
      level: (text(values, 'log.level') ?? 'info') as TenureConfig['log']['level'],
      format: (text(values, 'log.format') ?? 'auto') as TenureConfig['log']['format'],
    },
    settings: groupSettings(values),
  }
}

function groupSettings(values: SettingValues): GroupSettings {
  const fenced = values.get('settings.fenced')
  const policy = text(values, 'settings.drain.policy')
  return prune({
    partitions: number(values, 'settings.partitions'),
    leaseTtlMs: number(values, 'settings.leaseTtl'),
    marginMs: number(values, 'settings.margin'),
    fenced: typeof fenced === 'boolean' ? fenced : undefined,
    drain: prune({
      deadlineMs: number(values, 'settings.drain.deadline'),
      policy: policy === null ? undefined : (policy as DrainPolicy),
    }),
    acquire: prune({ deadlineMs: number(values, 'settings.acquire.deadline') }),
    settle: prune({
      firstGrantMs: number(values, 'settings.settle.firstGrant'),
      balanceMs: number(values, 'settings.settle.balance'),
    }),
    restartGraceMs: number(values, 'settings.restartGrace'),
    budget: prune({
      movesInFlight: number(values, 'settings.budget.movesInFlight'),
      movesInFlightPerMember: number(values, 'settings.budget.movesInFlightPerMember'),
      movesPerMinute: number(values, 'settings.budget.movesPerMinute'),
    }),
  }) as GroupSettings
}

/** The object without what is not set and without empty objects: neither may hide a default. */
function prune(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object).filter(([, value]) => {
      if (typeof value !== 'object' || value === null) return value !== undefined
      return Object.keys(value).length > 0
    }),
  )
}

/** The client library takes neither credentials nor the wish for TLS from a server's URL. */
function natsConnection(values: SettingValues): TenureConfig['nats'] {
  const servers = list(values, 'nats.servers')
  const tls = tlsFiles(values, 'nats')
  const wantsTls = servers.some((server) => server.startsWith('tls://'))
  const userInfo = servers.map((server) => /\/\/([^@]*)@/.exec(server)?.[1]).find(Boolean)
  const colon = userInfo?.indexOf(':') ?? -1
  const fromUrl =
    userInfo === undefined
      ? {}
      : colon < 0
        ? { token: decodeUserInfo(userInfo) }
        : {
            user: decodeUserInfo(userInfo.slice(0, colon)),
            password: decodeUserInfo(userInfo.slice(colon + 1)),
          }
  const own = prune({
    user: values.get('nats.user'),
    password: values.get('nats.password'),
    token: values.get('nats.token'),
    credsFile: values.get('nats.credsFile'),
  })
  return {
    servers: servers.map((server) => server.replace(/\/\/[^@]*@/, '//')),
    // An empty object asks for TLS too, so it is not pruned.
    ...(tls !== undefined || wantsTls ? { tls: tls ?? {} } : {}),
    ...(Object.keys(own).length > 0 ? own : fromUrl),
  }
}

/** As it stands where it is no percent-encoding. */
function decodeUserInfo(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Undefined when none of the three is given. */
function tlsFiles(values: SettingValues, server: 'etcd' | 'nats'): TlsFiles | undefined {
  const files = prune({
    caFile: values.get(`${server}.tls.ca`),
    certFile: values.get(`${server}.tls.cert`),
    keyFile: values.get(`${server}.tls.key`),
  })
  return Object.keys(files).length === 0 ? undefined : files
}

function text(values: SettingValues, name: string): string | null {
  const value = values.get(name)
  return typeof value === 'string' ? value : null
}

function number(values: SettingValues, name: string): number | undefined {
  const value = values.get(name)
  return typeof value === 'number' ? value : undefined
}

function list(values: SettingValues, name: string): readonly string[] {
  const value = values.get(name)
  return Array.isArray(value) ? value : []
}
