/**
 * Plan: the program itself as a child process, in a folder of its own, against canned servers: exit
 * codes as a shell sees them, streams, signals, a reader that goes away.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { problem, serveCanned, start } from './cli-world.ts'

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tenure-cli-'))
  t.after(() => rm(path, { recursive: true, force: true }))
  return path
}

test('program, refusals and faults, exit with the documented codes', async (t) => {
  const home = await folder(t)
  const server = await serveCanned(t, ({ url }) =>
    url.startsWith('/v1/groups/gone')
      ? problem(404, 'unknown-group', 'no group "gone" here')
      : problem(409, 'conflict', 'a rebalance runs already'),
  )
  const variables = { TENURE_URL: server.url, TENURE_HTTP_TOKEN: 'hunter2' }
  const nowhere = await unusedUrl()
  const unreachable = { ...variables, TENURE_URL: nowhere }
  const runs = await Promise.all([
    start(['status', '--group', 'gone'], home, variables).ended,
    start(['rebalance', '--group', 'orders', '--json'], home, variables).ended,
    start(['status'], home, unreachable).ended,
    start(['status', '--nope'], home, variables).ended,
  ])
  assert.deepEqual(
    runs.map(({ exitCode, stdout, stderr }) => [exitCode, stdout, stderr]),
    [
      [4, '', 'tenure: no group "gone" here\n'],
      [5, '', '{"error":{"code":"conflict","message":"a rebalance runs already","exitCode":5}}\n'],
      [
        3,
        '',
        `tenure: cannot reach ${nowhere} (ECONNREFUSED): start \`tenure serve\`, or name one with --url or TENURE_URL\n`,
      ],
      [2, '', "tenure: unknown option '--nope': `tenure status --help` shows what there is\n"],
    ],
  )
  assert.ok(server.received.every(({ token }) => token === 'Bearer hunter2'))
})

test('program, a configuration file in its folder, reads and checks it', async (t) => {
  const home = await folder(t)
  await writeFile(join(home, 'tenure.config.json'), '{ "etcd": { "endpoint": "a:1" } }')
  const { exitCode, stderr } = await start(['config'], home, {}).ended
  assert.equal(exitCode, 2)
  assert.match(stderr, /unknown setting "etcd\.endpoint": did you mean "etcd\.endpoints"\?/)
  await writeFile(join(home, 'other.json'), '{ "groups": ["orders"] }')
  const named = await start(['config', '--json'], home, { TENURE_CONFIG: 'other.json' }).ended
  assert.equal(named.exitCode, 0)
  const { settings } = JSON.parse(named.stdout) as { settings: { name: string; origin: string }[] }
  assert.equal(settings.find(({ name }) => name === 'groups')?.origin, 'file other.json')
})

test('program, Ctrl-C while it watches, ends with 130', async (t) => {
  const home = await folder(t)
  const server = await serveStream(t, 'event: start\nid: 1.1\ndata: {"version":"1.1"}\n\n')
  const watching = start(['watch', '--group', 'orders', '--url', server], home, {})
  await eventually(() => watching.stderr().includes('following from version 1.1'), {
    timeoutMs: 20_000,
    what: 'the watch began',
  })
  watching.child.kill('SIGINT')
  assert.equal((await watching.ended).exitCode, 130)
})

test('program, a reader that goes away, ends it without a word', async (t) => {
  const home = await folder(t)
  const { child, ended, stderr } = start(['config', '--markdown'], home, {})
  child.stdout.destroy()
  const { exitCode } = await ended
  assert.deepEqual([exitCode, stderr()], [0, ''])
})

test('program, what it imports before a command is known, is only the parser of words', async () => {
  const seen = new Set<string>()
  const libraries = new Set<string>()
  const follow = async (module: URL): Promise<void> => {
    if (seen.has(module.href)) return
    seen.add(module.href)
    const text = await readFile(module, 'utf8')
    for (const [, name = ''] of text.matchAll(
      /^(?:import|export) (?!type\b)[^;]*?from '([^']+)'/gm,
    )) {
      if (name.startsWith('.')) await follow(new URL(name, module))
      else if (!name.startsWith('node:')) libraries.add(name)
    }
  }
  await follow(new URL('../../src/main.ts', import.meta.url))
  assert.ok(seen.size > 20, 'the imports were followed')
  assert.deepEqual([...libraries], ['commander'])
})

/** A server that answers each request with the beginning of a stream that goes on. */
async function serveStream(t: TestContext, text: string): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** An address where nothing listens any more. */
async function unusedUrl(): Promise<string> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}
