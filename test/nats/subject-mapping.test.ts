/**
 * Plan: a real nats-server maps published keys by `partition(P, 1)`; each must arrive under the partition
 * that `partitionOf` names. Plain keys agree at every P; others agree on their encoded token.
 */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { NatsConnection } from 'nats'
import { connect } from 'nats'
import { partitionOf } from '../../src/core/partition-key.ts'
import { encodeSubjectToken, isPlainKey } from '../../src/core/subject-token.ts'

const PARTITIONS = [1, 2, 7, 64, 1000, 100_000]
const DEADLINE_MS = 15_000

let folder = ''
let server: ChildProcess
let connection: NatsConnection

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenure-mapping-'))
  const port = await freePort()
  const mappings = PARTITIONS.map(
    (count) => `  "keys${count}.*": "mapped${count}.{{partition(${count},1)}}.{{wildcard(1)}}"`,
  )
  const config = join(folder, 'nats.conf')
  await writeFile(config, `listen: "127.0.0.1:${port}"\nmappings = {\n${mappings.join('\n')}\n}\n`)
  server = spawn(natsServer(), ['-c', config], { stdio: ['ignore', 'ignore', 'pipe'] })
  await listening(server)
  connection = await connect({ servers: `127.0.0.1:${port}`, reconnect: false })
})

after(async () => {
  await connection?.close()
  if (server?.exitCode === null && server.signalCode === null) {
    const exited = new Promise((resolve) => server.once('exit', resolve))
    server.kill('SIGKILL')
    await exited
  }
  if (folder !== '') await rm(folder, { recursive: true, force: true })
})

test('subject mapping, 2,500 plain keys at several P, puts each where partitionOf does', async () => {
  const keys = plainKeys(2500)
  assert.equal(keys.length, 2500)
  for (const count of PARTITIONS) {
    const mapped = await publish(count, keys)
    const expected = keys.map((key) => `${partitionOf(key, count)}.${key}`)
    assert.deepEqual(mapped, expected, `P = ${count}`)
  }
})

test('subject mapping, keys that need encoding, are hashed by their token', async () => {
  const keys = ['', 'a.b', '*', '>', 'a b', 'tab\tnewline\r\n', '100%', '\ud800', '%', 'ü.ß', '\0']
  const tokens = keys.map(encodeSubjectToken)
  const mapped = await publish(64, tokens)
  assert.deepEqual(
    mapped,
    tokens.map((token) => `${partitionOf(token, 64)}.${token}`),
  )
  assert.ok(
    keys.some((key, index) => partitionOf(key, 64) !== partitionOf(tokens[index] ?? '', 64)),
  )
})

test('subject mapping, a key with a percent sign published as it stands, agrees', async () => {
  const keys = ['100%', '%41', 'a%2Eb']
  const mapped = await publish(64, keys)
  assert.deepEqual(
    mapped,
    keys.map((key) => `${partitionOf(key, 64)}.${key}`),
  )
})

/** Distinct keys of many kinds: numbered, random ASCII, and any characters, each plain. */
function plainKeys(count: number): readonly string[] {
  const texts = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 })
  const ascii = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 24 })
  const sampled = fc.sample(fc.oneof(texts, ascii).filter(isPlainKey), { numRuns: count, seed: 7 })
  const numbered = Array.from({ length: count }, (_, index) => `customer-${index}`)
  const signs = ['Zoë', '№7', '😀', '\u0080', '\u00a0x', '\u2028', '\ufeff', '\ufffd', '$SYS', '_']
  const mixed = numbered.flatMap((key, index) => [key, sampled[index] ?? key])
  return [...new Set([...signs, ...mixed])].slice(0, count)
}

/** Publishes each token under `keys<count>.` and returns `<partition>.<token>` as it came back, in order. */
async function publish(count: number, tokens: readonly string[]): Promise<readonly string[]> {
  const prefix = `mapped${count}.`
  const received: string[] = []
  const subscription = connection.subscribe(`${prefix}*.*`, { max: tokens.length })
  const timer = setTimeout(() => subscription.unsubscribe(), DEADLINE_MS)
  try {
    await connection.flush()
    for (const token of tokens) connection.publish(`keys${count}.${token}`)
    for await (const message of subscription) received.push(message.subject.slice(prefix.length))
  } finally {
    clearTimeout(timer)
  }
  return received
}

function natsServer(): string {
  const named = process.env['TENURE_NATS_BIN']
  if (named !== undefined && named !== '') return named
  const folders = (process.env['PATH'] ?? '').split(':')
  const found = [...folders, '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin']
    .map((path) => join(path, 'nats-server'))
    .find((path) => existsSync(path))
  if (found === undefined) throw new Error('nats-server not found; set TENURE_NATS_BIN')
  return found
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** Resolves when the server says that it is ready; rejects with its log when it ends or stays silent. */
function listening(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = ''
    const fail = () => reject(new Error(`nats-server did not start:\n${log}`))
    const timer = setTimeout(fail, DEADLINE_MS)
    child.once('error', reject)
    child.once('exit', fail)
    child.stderr?.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      if (!log.includes('Server is ready')) return
      clearTimeout(timer)
      child.removeListener('exit', fail)
      resolve()
    })
  })
}
