/**
 * Plan: resolve configurations from layers given as data; check which layer wins, what is refused and
 * with which words, and that nothing secret is ever in them.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ConfigurationSources,
  displayValue,
  resolveConfiguration,
} from '../../src/cli/configuration.ts'
import { describeDuration, durationMs } from '../../src/cli/setting-kinds.ts'
import { SETTINGS } from '../../src/cli/settings.ts'
import { renderSettingsTable } from '../../src/cli/settings-table.ts'
import { nearest } from '../../src/cli/suggestion.ts'
import { DEFAULT_KEY_PREFIX } from '../../src/core/keys.ts'

type Layers = {
  readonly flags?: Readonly<Record<string, string>>
  readonly variables?: Readonly<Record<string, string>>
  readonly file?: unknown
  readonly dev?: Readonly<Record<string, unknown>>
  readonly files?: Readonly<Record<string, string>>
}

function resolve(layers: Layers) {
  const text = typeof layers.file === 'string' ? layers.file : JSON.stringify(layers.file)
  const sources: ConfigurationSources = {
    flags: new Map(Object.entries(layers.flags ?? {})),
    variables: layers.variables ?? {},
    file: layers.file === undefined ? null : { path: 'tenure.config.json', text },
    dev: layers.dev === undefined ? null : { path: '.tenure/dev.json', values: layers.dev },
    readFile: (path) => {
      const content = layers.files?.[path]
      if (content !== undefined) return content
      throw Object.assign(new Error('absent'), { code: 'ENOENT' })
    },
  }
  return resolveConfiguration(sources)
}

function config(layers: Layers) {
  const resolution = resolve(layers)
  if (!resolution.ok) assert.fail(resolution.problems.join('\n'))
  return resolution.config
}

function problems(layers: Layers): readonly string[] {
  const resolution = resolve(layers)
  return resolution.ok ? [] : resolution.problems
}

test('configuration, nothing set, has the defaults and no group settings', () => {
  assert.deepEqual(config({}), {
    groups: [],
    url: 'http://127.0.0.1:7300',
    etcd: { endpoints: ['127.0.0.1:2379'] },
    nats: { servers: ['127.0.0.1:4222'] },
    keyPrefix: DEFAULT_KEY_PREFIX,
    worker: {},
    http: { host: '127.0.0.1', port: 7300, token: null },
    health: { host: '127.0.0.1', port: null },
    log: { level: 'info', format: 'auto' },
    settings: {},
  })
})

test('configuration, one setting in every layer, takes them in the documented order', () => {
  const layers: Record<string, Layers> = {
    'f:1': { flags: { 'etcd.endpoints': 'f:1' } },
    'v:1': { variables: { TENURE_ETCD_ENDPOINTS: 'v:1' } },
    'c:1': { file: { etcd: { endpoints: ['c:1'] } } },
    'd:1': { dev: { 'etcd.endpoints': ['d:1'] } },
    'e:1': { variables: { ETCDCTL_ENDPOINTS: 'e:1' } },
  }
  const order = Object.keys(layers)
  for (const [index, winner] of order.entries()) {
    const present = order.slice(index).map((name) => layers[name])
    const merged: Layers = Object.assign({}, ...present, {
      variables: Object.assign({}, ...present.map((layer) => layer?.variables ?? {})),
    })
    assert.deepEqual(config(merged).etcd.endpoints, [winner])
  }
})

test('configuration, a whole file, gives options that the adapters take as they stand', () => {
  const files = { 'ca.pem': 'x', 'c.pem': 'x', 'k.pem': 'x' }
  const tls = { ca: 'ca.pem', cert: 'c.pem', key: 'k.pem' }
  const expected = { caFile: 'ca.pem', certFile: 'c.pem', keyFile: 'k.pem' }
  const full = config({
    files,
    file: {
      groups: ['orders', 'bills'],
      etcd: { endpoints: ['https://a:2379', 'https://b:2379'], tls, username: 'u', password: 'p' },
      nats: { servers: 'nats://a:4222,nats://b:4222', tls, token: 't' },
      member: 'orders-1',
      weight: 2,
      settings: { partitions: 128, leaseTtl: '9s', fenced: true, drain: { policy: 'evict' } },
    },
  })
  assert.deepEqual(full.groups, ['orders', 'bills'])
  assert.deepEqual(full.etcd, {
    endpoints: ['https://a:2379', 'https://b:2379'],
    tls: expected,
    username: 'u',
    password: 'p',
  })
  assert.deepEqual(full.nats, {
    servers: ['nats://a:4222', 'nats://b:4222'],
    tls: expected,
    token: 't',
  })
  assert.deepEqual(full.worker, { member: 'orders-1', weight: 2 })
  assert.deepEqual(full.settings, {
    partitions: 128,
    leaseTtlMs: 9000,
    fenced: true,
    drain: { policy: 'evict' },
  })
})

test('configuration, credentials in NATS_URL, moves them out of the address', () => {
  const of = (url: string) => config({ variables: { NATS_URL: url } }).nats
  assert.deepEqual(of('nats://ann:p%40ss@h:4222'), {
    servers: ['nats://h:4222'],
    user: 'ann',
    password: 'p@ss',
  })
  assert.deepEqual(of('nats://tok@h:4222'), { servers: ['nats://h:4222'], token: 'tok' })
  assert.deepEqual(of('tls://h:4222'), { servers: ['tls://h:4222'], tls: {} })
})

test('configuration, bad values, names setting, place and remedy of every one', () => {
  assert.deepEqual(
    problems({
      flags: { 'settings.leaseTtl': '6' },
      variables: { TENURE_WEIGHT: 'heavy', TENURE_ETCD_ENDPOINTS: 'nowhere' },
      file: { log: { level: 'loud' }, http: { port: '7300' } },
    }),
    [
      'etcd.endpoints (variable TENURE_ETCD_ENDPOINTS): "nowhere" is refused: write one or several of host:port, http://host:port or https://host:port, separated by commas',
      'weight (variable TENURE_WEIGHT): "heavy" is refused: write a whole number from 0 to 1000000',
      'http.port (file tenure.config.json): "7300" is refused: write a whole number from 0 to 65535',
      'log.level (file tenure.config.json): "loud" is refused: write one of fatal, error, warn, info, debug, trace, silent',
      'settings.leaseTtl (flag --lease-ttl): "6" is refused: write a duration with its unit, such as 500ms, 6s or 2m',
    ],
  )
})

test('configuration, values that contradict each other, names the one to change', () => {
  assert.match(
    problems({ flags: { 'settings.leaseTtl': '2500ms' } })[0] ?? '',
    /^settings\.leaseTtl \(flag --lease-ttl\): leaseTtlMs must be whole seconds/,
  )
  assert.match(
    problems({ file: { settings: { drain: { policy: 'fence' } } } })[0] ?? '',
    /^settings\.drain\.policy \(file tenure\.config\.json\): .* not fenced/,
  )
  assert.deepEqual(problems({ variables: { TENURE_ETCD_USERNAME: 'u' } }), [
    'etcd.username (variable TENURE_ETCD_USERNAME) is of no use alone: set etcd.password too',
  ])
})

test('configuration, unknown names, suggests the nearest known one', () => {
  assert.deepEqual(
    problems({
      variables: { TENURE_ETCD_ENDPOINT: 'a:1', TENURE_ZZZZZZZZ: '1' },
      file: { etcd: { endpoint: 'a:1', tls: 'yes' }, grups: ['orders'] },
    }),
    [
      'variable TENURE_ETCD_ENDPOINT is no setting of Tenure: did you mean "TENURE_ETCD_ENDPOINTS"?',
      'variable TENURE_ZZZZZZZZ is no setting of Tenure: unset it, or see `tenure config` for the known ones',
      'file tenure.config.json: unknown setting "etcd.endpoint": did you mean "etcd.endpoints"?',
      'file tenure.config.json: "etcd.tls" must be an object: write "etcd.tls": { … }',
      'file tenure.config.json: unknown setting "grups": did you mean "groups"?',
    ],
  )
})

test('configuration, variables that Kubernetes makes of a Service, ignores them', () => {
  const variables = {
    TENURE_SERVICE_HOST: '10.0.0.1',
    TENURE_SERVICE_PORT_HTTP: '7300',
    TENURE_PORT: 'tcp://10.0.0.1:7300',
    TENURE_PORT_7300_TCP_ADDR: '10.0.0.1',
    TENURE_HTTP_PORT: 'tcp://10.0.0.1:7300',
  }
  assert.equal(config({ variables }).http.port, 7300)
})

test('configuration, a secret in a file, reads it; two places at one level are refused', () => {
  const files = { '/run/token': 's3cret\n', '/run/empty': '\n' }
  const at = (variables: Record<string, string>, file?: object): Layers => ({
    variables,
    files,
    ...(file === undefined ? {} : { file }),
  })
  assert.equal(config(at({ TENURE_HTTP_TOKEN_FILE: '/run/token' })).http.token, 's3cret')
  const stronger = at({ TENURE_HTTP_TOKEN: 'own' }, { http: { tokenFile: '/run/token' } })
  assert.equal(config(stronger).http.token, 'own')
  const weaker = at({ TENURE_HTTP_TOKEN_FILE: '/run/token' }, { http: { token: 'old' } })
  assert.equal(config(weaker).http.token, 's3cret')
  assert.match(
    problems(at({ TENURE_HTTP_TOKEN_FILE: '/run/token', TENURE_HTTP_TOKEN: 'x' }))[0] ?? '',
    /keep one of the two/,
  )
  assert.match(problems(at({ TENURE_HTTP_TOKEN_FILE: '/run/empty' }))[0] ?? '', /is empty/)
  assert.match(problems(at({ TENURE_HTTP_TOKEN_FILE: '/none' }))[0] ?? '', /ENOENT/)
})

test('configuration, secrets in bad values, never repeats them', () => {
  const said = problems({
    variables: { NATS_URL: 'nats://ann:hunter2/x@h:4222' },
    file: { http: { token: { hunter2: 1 } }, nats: { password: 'hunter2' } },
  })
  assert.ok(said.length >= 2, 'each bad value is refused')
  assert.doesNotMatch(said.join('\n'), /hunter2/)
  assert.doesNotMatch(problems({ file: '{"http":{"token":"hunter2" oops' }).join('\n'), /hunter2/)
  for (const setting of SETTINGS) {
    if (setting.secret) assert.equal(setting.flag, null, `${setting.name} shows in ps`)
  }
})

test('displayed values, secrets and credentials, are hidden; durations carry their unit', () => {
  const of = (name: string) => {
    const setting = SETTINGS.find((each) => each.name === name)
    if (setting === undefined) assert.fail(name)
    return setting
  }
  assert.equal(displayValue(of('http.token'), 'hunter2'), '********')
  assert.equal(
    displayValue(of('nats.servers'), ['nats://u:hunter2@h:1', 'nats://h:2']),
    'nats://********@h:1,nats://h:2',
  )
  assert.equal(displayValue(of('settings.leaseTtl'), 6000), '6s')
})

test('durations, every unit, read back as they are described', () => {
  for (const milliseconds of [0, 1, 999, 1000, 1500, 60_000, 90_000, 3_600_000]) {
    assert.equal(durationMs(describeDuration(milliseconds)), milliseconds)
  }
  for (const text of ['', '6', '-1s', '6 s', '1e3s', '6d']) assert.equal(durationMs(text), null)
})

test('suggestions, a word near none, suggest nothing', () => {
  assert.equal(nearest('stauts', ['status', 'move']), 'status')
  assert.equal(nearest('xyzzy', ['status', 'move']), null)
})

test('list of settings, names, flags and variables, are each used once and all in the table', () => {
  for (const field of ['name', 'variable', 'flag'] as const) {
    const values = SETTINGS.map((setting) => setting[field]).filter((value) => value !== null)
    assert.equal(new Set(values).size, values.length, field)
  }
  const table = renderSettingsTable()
  for (const setting of SETTINGS) assert.ok(table.includes(`| \`${setting.name}\` |`), setting.name)
  assert.equal(table.split('\n').length, SETTINGS.length + 3)
})
