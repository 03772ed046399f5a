import assert from 'node:assert/strict'
import fs, { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fastify from 'fastify'
import type { Token } from '../../src/core/token.ts'
import { encodeTokenHeader } from '../../src/core/token-text.ts'
import {
  createHttpFence,
  createMemoryHighWater,
  type FencePluginOptions,
  fencedFetch,
  fencePlugin,
  openHighWaterFile,
} from '../../src/fence/http.ts'
import { temporaryFolder } from '../support/servers.ts'
import { MALFORMED_TOKENS, SESSION_B, sealedOf, tokenOf } from './tokens.ts'

const old = tokenOf(4)
const next = tokenOf(5, { session: SESSION_B })

async function startResource(t: TestContext, changes: Partial<FencePluginOptions> = {}) {
  const app = fastify()
  const entries: string[] = []
  const refused: string[] = []
  const gates = { enter: () => {}, leave: Promise.resolve() }
  app.post('/open', async () => ({}))
  await app.register(fencePlugin, {
    group: 'orders',
    store: createMemoryHighWater(),
    sealed: () => ({ checkpoint: entries.length }),
    refused: (token, { reason }) => refused.push(`${token.generation} ${reason}`),
    ...changes,
  })
  app.post<{ Body: { entry: string } }>('/append', async (request) =>
    request.fence.commit(() => ({ length: entries.push(request.body.entry) })),
  )
  app.post('/slow', async (request) =>
    request.fence.commit(async () => {
      gates.enter()
      await gates.leave
      entries.push('slow')
      return {}
    }),
  )
  app.post('/late', async (request) => {
    gates.enter()
    await gates.leave
    return request.fence.commit(() => ({ length: entries.push('late') }))
  })
  app.post('/forgetful', async () => ({ done: true }))
  app.get('/entries', async () => entries)
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => app.close())
  const fence = createHttpFence({ baseUrl })
  const append = (token: Token, entry: string) => fence.guard(token, appending(baseUrl, entry))
  return { app, baseUrl, entries, refused, gates, fence, append }
}

function appending(baseUrl: string, entry: string) {
  const headers = { 'content-type': 'application/json' }
  return {
    url: `${baseUrl}/append`,
    init: { method: 'POST', headers, body: JSON.stringify({ entry }) },
  }
}

/** Makes effects stand still: `entered` once one does, until `release`. */
function standStill(gates: { enter: () => void; leave: Promise<void> }) {
  let release = () => {}
  gates.leave = new Promise<void>((resolve) => {
    release = resolve
  })
  const entered = new Promise<void>((resolve) => {
    gates.enter = resolve
  })
  return { entered, release: () => release() }
}

test('a sealed token writes; a seal answers what the new owner starts from', async (t) => {
  const { fence, append, entries } = await startResource(t)
  assert.deepEqual(await append(old, 'x'), { ok: false, reason: 'unsealed', highest: null })
  assert.deepEqual(await fence.seal(old), { ok: true })
  const done = await append(old, 'a')
  assert.ok(done.ok)
  assert.deepEqual(await done.value.json(), { length: 1 })
  assert.deepEqual(await fence.sealAndRead(next), { checkpoint: 1 })
  assert.deepEqual(entries, ['a'])
})

test('late writes, late seals and equal generations of another session are refused', async (t) => {
  const { fence, append, entries, refused } = await startResource(t)
  await fence.seal(old)
  await fence.seal(next)
  const refusal = { ok: false, reason: 'stale', highest: sealedOf(next) }
  assert.deepEqual(await append(old, 'late'), refusal)
  assert.deepEqual(await fence.seal(old), refusal)
  const twin = { ...next, session: old.session }
  assert.deepEqual(await fence.seal(twin), refusal)
  assert.deepEqual(await append(twin, 'twin'), refusal)
  const above = { ...next, generation: 6 }
  assert.deepEqual(await append(above, 'above'), { ...refusal, reason: 'unsealed' })
  assert.deepEqual(entries, [])
  assert.deepEqual(refused, ['4 stale', '5 stale', '6 unsealed'])
})

test('a write that was admitted before the seal and commits after it is refused', async (t) => {
  const { baseUrl, fence, entries, gates } = await startResource(t)
  await fence.seal(old)
  const { entered, release } = standStill(gates)
  const writing = fence.guard(old, { url: `${baseUrl}/late`, init: { method: 'POST' } })
  await entered
  await fence.seal(next)
  release()
  assert.deepEqual(await writing, { ok: false, reason: 'stale', highest: sealedOf(next) })
  assert.deepEqual(entries, [])
})

test('a seal waits for an effect that runs, and gives up when it never ends', async (t) => {
  const { baseUrl, fence, entries, gates } = await startResource(t, { sealTimeoutMs: 40 })
  await fence.seal(old)
  const { entered, release } = standStill(gates)
  const writing = fence.guard(old, { url: `${baseUrl}/slow`, init: { method: 'POST' } })
  await entered
  await assert.rejects(fence.seal(next), { code: 'fence-not-ready', message: /seal again later/ })
  release()
  assert.equal((await writing).ok, true)
  assert.deepEqual(entries, ['slow'])
  assert.deepEqual(await fence.seal(next), { ok: true })
})

test('fencedFetch throws a refusal with the highest token, and passes other replies on', async (t) => {
  const { baseUrl, fence } = await startResource(t)
  await fence.seal(next)
  const { url, init } = appending(baseUrl, 'x')
  await assert.rejects(fencedFetch(old)(url, init), {
    code: 'fence-refused',
    details: { reason: 'stale', highest: sealedOf(next), partition: 3 },
  })
  assert.equal((await fencedFetch(next)(url, init)).status, 200)
  assert.equal((await fencedFetch(next)(`${baseUrl}/none`, init)).status, 404)
})

test('a refusal is problem+json that names the highest token seen', async (t) => {
  const { baseUrl, fence } = await startResource(t)
  await fence.seal(next)
  const headers = { 'tenure-token': encodeTokenHeader(old) }
  const reply = await fetch(`${baseUrl}/late`, { method: 'POST', headers })
  assert.equal(reply.status, 409)
  assert.match(reply.headers.get('content-type') ?? '', /^application\/problem\+json/)
  assert.equal(reply.headers.get('tenure-fence'), '1')
  assert.deepEqual(await reply.json(), {
    type: 'urn:tenure:problem:fence-refused',
    title: 'fence refused',
    status: 409,
    code: 'fence-refused',
    detail: 'token 1764440000.4 of partition 3 is stale: the highest seen is 1764440000.5',
    reason: 'stale',
    highest: sealedOf(next),
    partition: 3,
  })
})

test('no token, a malformed one and one of another group are 400 and write nothing', async (t) => {
  const { baseUrl, entries, fence } = await startResource(t)
  await fence.seal(old)
  const texts = [null, '', 'nonsense', 'v2:x', encodeTokenHeader(old).replace('orders', 'other')]
  for (const text of texts) {
    const { url, init } = appending(baseUrl, 'x')
    const token: Record<string, string> = text === null ? {} : { 'tenure-token': text }
    for (const target of [url, `${baseUrl}/tenure/seal`]) {
      const reply = await fetch(target, { ...init, headers: { ...init.headers, ...token } })
      assert.equal(reply.status, 400, `${text}`)
      const { code, detail } = (await reply.json()) as { code: string; detail: string }
      assert.equal(code, 'invalid-argument')
      assert.notEqual(detail, '')
    }
  }
  for (const bad of MALFORMED_TOKENS) {
    await assert.rejects(fence.seal(bad as Token), { code: 'invalid-argument' })
    await assert.rejects(fence.guard(bad as Token, appending(baseUrl, 'x')), {
      code: 'invalid-argument',
    })
  }
  assert.deepEqual(entries, [])
})

test('reads need no token; a handler that never commits is found out', async (t) => {
  const { baseUrl, fence } = await startResource(t)
  await fence.seal(old)
  assert.equal((await fetch(`${baseUrl}/entries`)).status, 200)
  const reply = await fencedFetch(old)(`${baseUrl}/forgetful`, { method: 'POST' })
  assert.equal(reply.status, 500)
  assert.match(((await reply.json()) as { detail: string }).detail, /request\.fence\.commit/)
})

test('a resource without a fence is an error that names the remedy', async (t) => {
  const app = fastify()
  app.post('/append', async () => ({}))
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => app.close())
  const fence = createHttpFence({ baseUrl })
  await assert.rejects(fence.seal(old), {
    code: 'fence-not-ready',
    message: /register fencePlugin/,
  })
  const { url, init } = appending(baseUrl, 'x')
  await assert.rejects(fencedFetch(old)(url, init), { code: 'fence-not-ready' })
})

test('a mark that cannot be kept is not raised', async (t) => {
  const store = createMemoryHighWater()
  const full = {
    highest: store.highest,
    raise: () => Promise.reject(new Error('no space left')),
  }
  const { fence, append } = await startResource(t, { store: full })
  await assert.rejects(fence.seal(old), { code: 'fence-not-ready', message: /was not kept/ })
  assert.deepEqual(await append(old, 'x'), { ok: false, reason: 'unsealed', highest: null })
})

test('the file keeps the highest tokens through a restart, a torn line and compaction', async (t) => {
  const path = join(await temporaryFolder(t), 'fence.log')
  const first = openHighWaterFile(path)
  for (let generation = 1; generation <= 2500; generation += 1) first.raise(tokenOf(generation))
  first.raise(tokenOf(7, { partition: 4 }))
  first.close()
  assert.ok(readFileSync(path, 'utf8').split('\n').length < 1500, 'old lines were dropped')
  appendFileSync(path, encodeTokenHeader(tokenOf(9999)).slice(0, -1))
  const second = openHighWaterFile(path)
  assert.deepEqual(second.highest(3), sealedOf(tokenOf(2500)))
  assert.deepEqual(second.highest(4), sealedOf(tokenOf(7)))
  assert.equal(second.highest(5), null)
  second.raise(tokenOf(2501))
  second.close()
  const third = openHighWaterFile(path)
  assert.deepEqual(third.highest(3), sealedOf(tokenOf(2501)))
  third.close()
})

test('a file that something else wrote is an error that names its line', async (t) => {
  const path = join(await temporaryFolder(t), 'fence.log')
  writeFileSync(path, `${encodeTokenHeader(old)}\nwhat is this\n`)
  assert.throws(() => openHighWaterFile(path), { code: 'record-malformed', message: /line 2/ })
  assert.match(readFileSync(path, 'utf8'), /what is this/)
})

test('after a raise that failed half-way the file holds whole lines again, and later raises last', async (t) => {
  const path = join(await temporaryFolder(t), 'fence.log')
  const file = openHighWaterFile(path)
  file.raise(tokenOf(1))
  const write = fs.writeFileSync
  failOnce(t, 'writeFileSync', (target: number, text: string) => write(target, text.slice(0, 20)))
  assert.throws(() => file.raise(tokenOf(2)), /disk full/)
  assert.deepEqual(file.highest(3), sealedOf(tokenOf(1)))
  file.raise(tokenOf(3))
  failOnce(t, 'fsyncSync', () => {})
  assert.throws(() => file.raise(tokenOf(4)), /disk full/)
  // The file that was opened anew took the name, and its folder could not be flushed.
  failOnce(t, 'renameSync', (from: string, to: string) => fs.copyFileSync(from, to))
  assert.throws(() => file.raise(tokenOf(5)), /disk full/)
  file.raise(tokenOf(6))
  file.close()
  const again = openHighWaterFile(path)
  assert.deepEqual(again.highest(3), sealedOf(tokenOf(6)))
  again.close()
})

/** The next call does what is given and fails. */
function failOnce(
  t: TestContext,
  name: 'writeFileSync' | 'fsyncSync' | 'renameSync',
  before: (...words: never[]) => void,
): void {
  const failing = t.mock.method(fs, name, (...words: never[]) => {
    failing.mock.restore()
    syncBuiltinESMExports()
    before(...words)
    throw new Error('disk full')
  })
  syncBuiltinESMExports()
}

test('a connection serves seal after seal, also where the answer is large and nobody reads it', async (t) => {
  const sealed = () => ({ state: 'x'.repeat(1_000_000) })
  const { app, fence, append } = await startResource(t, { sealed })
  let connections = 0
  app.server.on('connection', () => {
    connections += 1
  })
  await fence.seal(old)
  await fence.seal(next)
  for (let call = 0; call < 20; call += 1) {
    assert.deepEqual(await fence.seal(next), { ok: true })
    assert.equal((await fence.seal(old)).ok, false)
    assert.equal((await append(old, 'late')).ok, false)
  }
  assert.ok(connections <= 3, `${connections} connections`)
})
