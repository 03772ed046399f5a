/**
 * The list of every setting of the command line. One place: flags, variables, the file's keys, their
 * checks and the README's table are all made of it.
 */
import type { Setting, SettingSection } from './setting.ts'
import type { SettingKind } from './setting-kinds.ts'

const TEXT: SettingKind = { type: 'text' }
const FILE: SettingKind = { type: 'file' }
const DURATION: SettingKind = { type: 'duration' }
const PORT: SettingKind = { type: 'integer', min: 0, max: 65_535 }
const HOST = '(?:[A-Za-z0-9._-]+|\\[[0-9a-fA-F:]+\\])'
const ETCD: SettingKind = {
  type: 'servers',
  pattern: new RegExp(`^(?:https?://)?${HOST}:\\d{1,5}/?$`),
  form: 'host:port, http://host:port or https://host:port, separated by commas',
}
const NATS: SettingKind = {
  type: 'servers',
  pattern: new RegExp(`^(?:(?:nats|tls)://(?:[^@/\\s]+@)?)?${HOST}(?::\\d{1,5})?/?$`),
  form: 'host:port, nats://host:port or tls://host:port, separated by commas',
}

type Details = {
  readonly flag?: string
  readonly kind?: SettingKind
  readonly byDefault?: Setting['byDefault']
  readonly foreignVariable?: string
  readonly variable?: string
  readonly secret?: boolean
}

const CONNECTION: readonly Setting[] = [
  setting('connection', 'etcd.endpoints', 'etcd endpoints', {
    flag: '--etcd-endpoints <list>',
    kind: ETCD,
    byDefault: ['127.0.0.1:2379'],
    foreignVariable: 'ETCDCTL_ENDPOINTS',
  }),
  setting('connection', 'etcd.tls.ca', 'certificate authority of etcd (PEM)', {
    flag: '--etcd-ca <file>',
    kind: FILE,
  }),
  setting('connection', 'etcd.tls.cert', 'own certificate towards etcd (PEM)', {
    flag: '--etcd-cert <file>',
    kind: FILE,
  }),
  setting('connection', 'etcd.tls.key', 'key of that certificate (PEM)', {
    flag: '--etcd-key <file>',
    kind: FILE,
  }),
  setting('connection', 'etcd.username', 'etcd user', { flag: '--etcd-username <name>' }),
  setting('connection', 'etcd.password', 'password of the etcd user', { secret: true }),
  setting('connection', 'etcd.passwordFile', 'file that holds that password', {
    flag: '--etcd-password-file <file>',
    kind: FILE,
  }),
  setting('connection', 'nats.servers', 'NATS servers', {
    flag: '--nats-servers <list>',
    kind: NATS,
    byDefault: ['127.0.0.1:4222'],
    foreignVariable: 'NATS_URL',
  }),
  setting('connection', 'nats.tls.ca', 'certificate authority of NATS (PEM)', {
    flag: '--nats-ca <file>',
    kind: FILE,
  }),
  setting('connection', 'nats.tls.cert', 'own certificate towards NATS (PEM)', {
    flag: '--nats-cert <file>',
    kind: FILE,
  }),
  setting('connection', 'nats.tls.key', 'key of that certificate (PEM)', {
    flag: '--nats-key <file>',
    kind: FILE,
  }),
  setting('connection', 'nats.user', 'NATS user', { flag: '--nats-user <name>' }),
  setting('connection', 'nats.password', 'password of the NATS user', { secret: true }),
  setting('connection', 'nats.passwordFile', 'file that holds that password', {
    flag: '--nats-password-file <file>',
    kind: FILE,
  }),
  setting('connection', 'nats.token', 'NATS token, instead of user and password', { secret: true }),
  setting('connection', 'nats.tokenFile', 'file that holds that token', {
    flag: '--nats-token-file <file>',
    kind: FILE,
  }),
  setting('connection', 'nats.credsFile', 'NATS credentials file (JWT and seed)', {
    flag: '--nats-creds-file <file>',
    kind: FILE,
  }),
  setting('connection', 'keyPrefix', 'prefix of every key in etcd', {
    flag: '--key-prefix <prefix>',
    kind: { type: 'prefix' },
    byDefault: '/tenure/v1/',
  }),
]

const MEMBER: readonly Setting[] = [
  setting('member', 'member', "this worker's stable name; unset: host name and a random suffix", {
    flag: '--member <name>',
    kind: { type: 'name' },
  }),
  setting('member', 'address', 'where callers reach this worker', { flag: '--address <address>' }),
  setting('member', 'weight', 'share of the partitions relative to others; 0: none [1]', {
    flag: '--weight <number>',
    kind: { type: 'integer', min: 0, max: 1_000_000 },
  }),
  setting('member', 'capacity', 'most partitions that this worker takes; unset: no limit', {
    flag: '--capacity <number>',
    kind: { type: 'integer', min: 0, max: 1_000_000 },
  }),
  setting('member', 'zone', 'failure zone of this worker', { flag: '--zone <name>' }),
]

const ACCESS: readonly Setting[] = [
  setting('scope', 'groups', 'groups to serve, work in or ask about', {
    flag: '--group <names>',
    variable: 'TENURE_GROUP',
    kind: { type: 'names' },
  }),
  setting('access', 'url', "address of a `serve` process, for operators' commands", {
    flag: '--url <url>',
    kind: { type: 'url' },
    byDefault: 'http://127.0.0.1:7300',
  }),
  setting('access', 'http.token', 'bearer token that `serve` asks for and commands send', {
    secret: true,
  }),
  setting('access', 'http.tokenFile', 'file that holds that token', {
    flag: '--token-file <file>',
    kind: FILE,
  }),
]

const LISTENER: readonly Setting[] = [
  setting('listener', 'http.host', 'address that `serve` listens on', {
    flag: '--host <address>',
    byDefault: '127.0.0.1',
  }),
  setting('listener', 'http.port', 'port that `serve` listens on; 0: any free one', {
    flag: '--port <number>',
    kind: PORT,
    byDefault: 7300,
  }),
]

const HEALTH: readonly Setting[] = [
  setting('health', 'health.host', 'address that `worker` answers health checks on', {
    flag: '--health-host <address>',
    byDefault: '127.0.0.1',
  }),
  setting(
    'health',
    'health.port',
    'port for that: /livez, /readyz, /metrics; 0: any free one; unset: no listener',
    { flag: '--health-port <number>', kind: PORT },
  ),
]

const LOG: readonly Setting[] = [
  setting('log', 'log.level', 'least severe log line that is written', {
    flag: '--log-level <level>',
    kind: {
      type: 'choice',
      choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    },
    byDefault: 'info',
  }),
  setting('log', 'log.format', 'auto: pretty on a terminal, JSON elsewhere', {
    flag: '--log-format <format>',
    kind: { type: 'choice', choices: ['auto', 'json', 'pretty'] },
    byDefault: 'auto',
  }),
]

/** Defaults of these are the group's own (core/group-config.ts), filled in when a group is created. */
const GROUP: readonly Setting[] = [
  groupSetting('partitions', 'number of partitions [64]', '--partitions <number>', count(1, 1e6)),
  groupSetting('leaseTtl', 'T, whole seconds, at least 2s [6s]', '--lease-ttl <time>'),
  groupSetting('margin', 'subtracted from every deadline [1s]', '--margin <time>'),
  groupSetting('fenced', 'protected resources refuse older tokens [false]', '--fenced', {
    type: 'boolean',
  }),
  groupSetting('drain.deadline', 'longest drain [30s]', '--drain-deadline <time>'),
  groupSetting(
    'drain.policy',
    'what follows an overdue drain [wait; fence in a fenced group]',
    '--drain-policy <policy>',
    { type: 'choice', choices: ['wait', 'fence', 'evict'] },
  ),
  groupSetting('acquire.deadline', 'longest acquire [30s]', '--acquire-deadline <time>'),
  groupSetting(
    'settle.firstGrant',
    'quiet time after a join before never-owned partitions are granted [500ms]',
    '--settle-first-grant <time>',
  ),
  groupSetting(
    'settle.balance',
    'quiet time after a membership change before balancing [1s]',
    '--settle-balance <time>',
  ),
  groupSetting(
    'restartGrace',
    'how long elections wait for the previous owner [0]',
    '--restart-grace <time>',
  ),
  groupSetting(
    'budget.movesInFlight',
    'moves at once in the group [one in 32 of the partitions, at least 16]',
    '--moves-in-flight <number>',
    count(1),
  ),
  groupSetting(
    'budget.movesInFlightPerMember',
    'moves at once per member [half of that]',
    '--moves-in-flight-per-member <number>',
    count(1),
  ),
  groupSetting(
    'budget.movesPerMinute',
    'moves per minute; 0: no limit [0]',
    '--moves-per-minute <number>',
    count(0),
  ),
]

/** In the order of the README's table. */
export const SETTINGS: readonly Setting[] = [
  ...ACCESS,
  ...CONNECTION,
  ...MEMBER,
  ...LISTENER,
  ...HEALTH,
  ...LOG,
  ...GROUP,
]

/** Variables that begin with TENURE_ and are no settings; who reads them is named. */
export const OTHER_VARIABLES: Readonly<Record<string, string>> = {
  TENURE_CONFIG: 'configuration file, when --config does not name one',
  TENURE_ETCD_BIN: 'etcd program that `tenure dev` starts',
  TENURE_NATS_BIN: 'nats-server program that `tenure dev` starts',
}

function setting(
  section: SettingSection,
  name: string,
  description: string,
  details: Details,
): Setting {
  return {
    name,
    section,
    description,
    flag: details.flag ?? null,
    variable: details.variable ?? variableOf(name),
    foreignVariable: details.foreignVariable ?? null,
    kind: details.kind ?? TEXT,
    byDefault: details.byDefault ?? null,
    secret: details.secret ?? false,
  }
}

function groupSetting(
  name: string,
  description: string,
  flag: string,
  kind: SettingKind = DURATION,
): Setting {
  return setting('group', `settings.${name}`, description, {
    flag,
    kind,
    variable: variableOf(name),
  })
}

function count(min: number, max = Number.MAX_SAFE_INTEGER): SettingKind {
  return { type: 'integer', min, max }
}

/** `TENURE_ETCD_TLS_CA` of `etcd.tls.ca`. */
function variableOf(name: string): string {
  const words = name.replaceAll('.', '_').replace(/[a-z](?=[A-Z])/g, '$&_')
  return `TENURE_${words.toUpperCase()}`
}
