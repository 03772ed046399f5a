/**
 * Plan: the command line against canned servers and implementations that note what they get: usage
 * errors, help, the group it is about, the dev environment, faults below HTTP.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { DevOptions, WorkerStart } from '../../src/cli/commands.ts'
import { createEventReader } from '../../src/cli/event-stream-reader.ts'
import type { TenureConfig } from '../../src/cli/tenure-config.ts'
import { problem, run, serveCanned } from './cli-world.ts'

const VERBS = [
  ...[
    'dev',
    'serve',
    'worker',
    'doctor',
    'verify',
    'config',
    'status',
    'partitions',
    'members',
    'owner',
  ],
  ...['watch', 'rebalances', 'rebalance', 'move', 'drain', 'undrain', 'cordon', 'uncordon'],
  ...['freeze', 'unfreeze', 'disable', 'enable', 'evict', 'incarnation'],
]

test('tenure --help, every verb, is named with its purpose, and no colour', async () => {
  const { exitCode, stdout } = await run(['--help'])
  assert.equal(exitCode, 0)
  for (const verb of VERBS) assert.match(stdout, new RegExp(`^  ${verb}\\b`, 'm'))
  assert.ok(!stdout.includes('\u001b'))
  for (const verb of VERBS) {
    const help = await run([verb, '--help'])
    assert.equal(help.exitCode, 0)
    assert.match(help.stdout, /--json/)
  }
  assert.equal((await run(['--version'])).stdout, '1.2.3\n')
})

test('tenure, usage errors, are one line with the remedy and exit 2', async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['statsu', /^tenure: unknown command 'statsu': did you mean status\?\n$/],
    ['status --grup x', /^tenure: unknown option '--grup': did you mean --group\?\n$/],
    ['move 1', /^tenure: missing required argument 'member': `tenure move --help` shows/],
    [
      'rebalance --timeout 5',
      /^tenure: option '--timeout <time>' argument '5' is invalid\. Write a/,
    ],
    ['watch --count none', /Write a whole number, at least 1\.\n$/],
    ['status --group a,b!', /^tenure: groups \(flag --group\): "a,b!" is refused: write one or/],
    ['status --config none.json', /none\.json \(flag --config\) cannot be read \(ENOENT\)/],
    ['serve', /^tenure: serve needs a group: name it with --group or TENURE_GROUP\n$/],
    ['worker', /^tenure: worker needs a module: `tenure worker \.\/worker\.js`, or start/],
    ['worker ./none.js', /^tenure: there is no module \/work-folder\/none\.js/],
    ['members --group a,b', /choose one with --group/],
  ]
  for (const [line, expected] of cases) {
    const { exitCode, stdout, stderr } = await run(line.split(' '))
    assert.match(stderr, expected)
    assert.equal(stderr.split('\n').length, 2, stderr)
    assert.deepEqual([exitCode, stdout], [2, ''])
  }
  const bare = await run([])
  assert.equal(bare.exitCode, 2)
  assert.match(bare.stderr, /Usage: tenure/)
})

test('tenure, replies that are no answer, exit as their status says', async (t) => {
  let canned = { status: 200, body: '<html>' as unknown }
  const server = await serveCanned(t, () => canned)
  const status = () => run(['status', '--url', server.url])
  assert.equal((await status()).exitCode, 1)
  assert.match((await status()).stderr, /something that is no JSON/)
  canned = { status: 404, body: 'not here' }
  assert.equal((await status()).exitCode, 4)
  assert.match((await status()).stderr, /answered 404, without a problem document/)
  canned = problem(504, 'timed-out', 'the store took too long')
  assert.equal((await status()).exitCode, 6)
  canned = problem(503, 'not-ready', 'still reading the map')
  assert.equal((await status()).exitCode, 3)
  canned = problem(418, 'teapot', 'short and stout')
  assert.deepEqual(
    [(await status()).exitCode, (await status()).stderr],
    [1, 'tenure: short and stout\n'],
  )
})

test('tenure, a redirect, is not followed with the token', async (t) => {
  const other = await serveCanned(t, () => ({ status: 200, body: { groups: [] } }))
  const server = await serveCanned(t, () => ({
    status: 302,
    body: '',
    headers: { location: `${other.url}/v1/groups` },
  }))
  const variables = { TENURE_HTTP_TOKEN: 'hunter2', TENURE_URL: server.url }
  const { exitCode } = await run(['status'], { variables })
  assert.equal(exitCode, 1)
  assert.equal(server.received[0]?.token, 'Bearer hunter2')
  assert.deepEqual(other.received, [])
})

test('tenure, several groups at the server, asks to choose', async (t) => {
  const groups = [{ group: 'orders' }, { group: 'bills' }]
  const server = await serveCanned(t, () => ({ status: 200, body: { groups } }))
  const { exitCode, stderr } = await run(['members', '--url', server.url])
  assert.equal(exitCode, 2)
  assert.match(stderr, /has the groups orders, bills: choose one with --group/)
  groups.splice(0)
  assert.equal((await run(['members', '--url', server.url])).exitCode, 4)
})

test('tenure config, secrets set, masks them in text and JSON', async () => {
  const variables = {
    TENURE_HTTP_TOKEN: 'hunter2',
    TENURE_ETCD_USERNAME: 'root',
    TENURE_ETCD_PASSWORD: 'hunter2',
    NATS_URL: 'nats://ann:hunter2@h:4222',
  }
  for (const words of [['config'], ['config', '--json']]) {
    const { exitCode, stdout, stderr } = await run(words, { variables })
    assert.equal(exitCode, 0)
    assert.doesNotMatch(stdout + stderr, /hunter2/)
    assert.match(stdout, /\*{8}@h:4222/)
    assert.match(stdout, /variable TENURE_HTTP_TOKEN/)
  }
})

test('tenure, a running dev environment, is found; flags win; a dead one is not', async (t) => {
  const server = await serveCanned(t, () => ({ status: 200, body: { groups: [] } }))
  const dev = { url: server.url, group: 'demo', etcd: ['127.0.0.1:1'], nats: ['127.0.0.1:2'] }
  const files = { '.tenure/dev.json': JSON.stringify({ ...dev, pid: 42 }) }
  const living = { files, livingProcesses: [42] }
  await run(['status'], living)
  assert.deepEqual(
    server.received.map(({ url }) => url),
    ['/v1/groups/demo'],
  )
  await run(['status', '--group', 'other'], living)
  assert.equal(server.received[1]?.url, '/v1/groups/other')
  const shown = await run(['config'], { files })
  assert.match(shown.stdout, /^url +http:\/\/127\.0\.0\.1:7300 +default$/m)

  const started: { config: TenureConfig; start: WorkerStart }[] = []
  const worker = async (config: TenureConfig, start: WorkerStart) => {
    started.push({ config, start })
    return 0
  }
  const world = { ...living, implementations: { worker } }
  assert.equal((await run(['worker', '--member', 'w-9'], world)).exitCode, 0)
  assert.deepEqual(started[0]?.config.etcd, { endpoints: ['127.0.0.1:1'] })
  assert.deepEqual(started[0]?.config.nats, { servers: ['127.0.0.1:2'] })
  assert.deepEqual(started[0]?.config.worker, { member: 'w-9' })
  assert.deepEqual(started[0]?.start, { script: null, dev: { ...dev, pid: 42 } })
})

test('tenure dev, its flags, reach the implementation in its units', async () => {
  const seen: DevOptions[] = []
  const dev = async (options: DevOptions) => {
    seen.push(options)
    return 7
  }
  const line = 'dev --for 20s --report r.json --workers 5 --partitions 32 --port 7400 --seed 9'
  assert.equal((await run(line.split(' '), { implementations: { dev } })).exitCode, 7)
  const defaults = await run(['dev'], { implementations: { dev } })
  assert.equal(defaults.exitCode, 7)
  const plain = seen.map(({ config: _, ...options }) => options)
  assert.deepEqual(plain, [
    { forMs: 20_000, reportFile: 'r.json', workers: 5, partitions: 32, port: 7400, seed: 9 },
    { forMs: null, reportFile: null, workers: 3, partitions: 64, port: null, seed: null },
  ])
})

test('tenure status, a terminal, is coloured unless NO_COLOR or --no-color', async (t) => {
  const counts = { partitions: 1, owned: 1, vacant: 0, moving: 0, halted: 0, notServing: 0 }
  const age = { version: '1.2', asOfMs: 1, ageMs: 1, stale: false }
  const rest = { rebalancer: null, incarnation: 1, frozen: null, disabled: null, alarms: [] }
  const group = { group: 'orders', members: 1, ...counts, ...rest, ...age }
  const server = await serveCanned(t, () => ({ status: 200, body: { groups: [group] } }))
  const words = ['status', '--url', server.url]
  assert.ok((await run(words, { isTTY: true })).stdout.includes('\u001b'))
  for (const plain of [
    await run(words),
    await run([...words, '--no-color'], { isTTY: true }),
    await run(words, { isTTY: true, variables: { NO_COLOR: '1' } }),
  ]) {
    assert.equal(plain.exitCode, 0)
    assert.ok(!plain.stdout.includes('\u001b'))
  }
})

test('tenure watch, streams that break, goes on from the last version it saw', async (t) => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(String(request.headers['last-event-id'] ?? 'none'))
    const version = `1.${asked.length}`
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      `event: map\nid: ${version}\ndata: {"version":"${version}","partitions":[]}\n\n`,
      () => response.destroy(),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const line = `watch --group orders --json --count 2 --url ${url}`
  const { exitCode, stdout, stderr } = await run(line.split(' '))
  assert.equal(exitCode, 0)
  assert.deepEqual(asked, ['none', '1.1'])
  assert.equal(stdout.trimEnd().split('\n').length, 2)
  assert.match(stderr, /connecting again/)
})

test('event reader, a stream cut at every place, gives the same events', () => {
  const text =
    'retry: 1000\n\n: beat\n\nevent: map\nid: 1.2\ndata: {"a":\ndata: 1}\n\nevent: reset\r\nid: 3\r\ndata: x\r\n\r\n'
  const expected = [
    { event: 'map', id: '1.2', data: '{"a":\n1}' },
    { event: 'reset', id: '3', data: 'x' },
  ]
  for (let cut = 0; cut <= text.length; cut++) {
    const reader = createEventReader()
    const events = [...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut))]
    assert.deepEqual(events, expected, `cut at ${cut}`)
  }
})
