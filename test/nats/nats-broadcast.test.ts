/** Plan: the adapter on a real nats-server that is late, restarted, killed and stopped. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { findFreePorts } from '../../src/dev/servers-process.ts'
import { createNatsBroadcast } from '../../src/nats/nats-broadcast.ts'
import type { NatsOptions } from '../../src/nats/nats-link.ts'
import { openNatsLink } from '../../src/nats/nats-link.ts'
import type { Broadcast } from '../../src/ports/broadcast.ts'
import { eventually } from '../support/eventually.ts'
import type { CleanUp } from '../support/servers.ts'
import { startNats, temporaryFolder } from '../support/servers.ts'

async function connect(
  cleanUp: CleanUp,
  url: string,
  options: Partial<NatsOptions> = {},
): Promise<Broadcast> {
  const broadcast = await createNatsBroadcast({ servers: [url], ...options })
  cleanUp.after(() => broadcast.close())
  return broadcast
}

function text(data: Uint8Array): string {
  return Buffer.from(data).toString()
}

const HELLO = Buffer.from('hello')

test('broadcast: messages reach every subscriber, and one member of a queue group', async (t) => {
  const { url } = await startNats(t)
  const [a, b] = [await connect(t, url), await connect(t, url)]
  assert.equal(a.status(), 'connected')
  assert.equal(a.maxPayloadBytes(), 1_048_576)
  const heard: string[] = []
  a.subscribe('t.all', ({ subject, data }) => heard.push(`a ${subject} ${text(data)}`))
  b.subscribe('t.all', ({ subject, data }) => heard.push(`b ${subject} ${text(data)}`))
  a.subscribe('t.one', () => heard.push('one'), { queue: 'q' })
  b.subscribe('t.one', () => heard.push('one'), { queue: 'q' })
  await settled(a)
  await settled(b)
  assert.equal(a.publish('t.all', HELLO), true)
  assert.equal(a.publish('t.one', HELLO), true)
  await settled(a)
  await settled(b)
  assert.deepEqual(heard.sort(), ['a t.all hello', 'b t.all hello', 'one'])
})

test('broadcast: a request collects replies until complete, else says so in time', async (t) => {
  const { url } = await startNats(t)
  const [a, b] = [await connect(t, url), await connect(t, url)]
  b.subscribe('t.get', (message) => {
    for (const part of ['1', '2', '3']) message.respond(Buffer.from(part))
  })
  b.subscribe('t.mute', () => {})
  await settled(b)
  const parts: string[] = []
  const complete = await a.request('t.get', HELLO, { timeoutMs: 5000 }, (data) => {
    parts.push(text(data))
    return parts.length === 3
  })
  assert.equal(complete, true)
  assert.deepEqual(parts, ['1', '2', '3'])
  assert.equal(await a.request('t.mute', HELLO, { timeoutMs: 50 }, () => true), false)
  const startedAtMs = performance.now()
  assert.equal(await a.request('t.nobody', HELLO, { timeoutMs: 20_000 }, () => true), false)
  assert.ok(performance.now() - startedAtMs < 10_000)
})

test('broadcast: no server at the start, creation succeeds and connects when one comes', async (t) => {
  const [port = 0] = await findFreePorts(1)
  const broadcast = await connect(t, `nats://127.0.0.1:${port}`)
  assert.equal(broadcast.status(), 'disconnected')
  assert.equal(broadcast.publish('t.x', HELLO), false)
  assert.equal(await broadcast.request('t.x', HELLO, { timeoutMs: 5000 }, () => true), false)
  const heard: string[] = []
  const statuses: string[] = []
  broadcast.subscribe('t.x', ({ data }) => heard.push(text(data)))
  broadcast.onStatus((status) => statuses.push(status))
  await startNats(t, { port })
  await eventually(() => broadcast.status() === 'connected', { timeoutMs: 5000, what: 'connected' })
  assert.deepEqual(statuses, ['connected'])
  assert.equal(broadcast.publish('t.x', HELLO), true)
  await eventually(() => heard.length === 1, { timeoutMs: 5000, what: 'heard' })
})

test('broadcast: server killed, publishes say that they are dropped; subscriptions return', async (t) => {
  const server = await startNats(t)
  const broadcast = await connect(t, server.url)
  const heard: string[] = []
  broadcast.subscribe('t.x', ({ data }) => heard.push(text(data)))
  const late = broadcast.subscribe('t.closed', ({ data }) => heard.push(text(data)))
  await server.kill()
  await eventually(() => broadcast.status() === 'disconnected', { timeoutMs: 5000, what: 'lost' })
  assert.equal(broadcast.publish('t.x', Buffer.from('lost')), false)
  broadcast.subscribe('t.while-down', ({ data }) => heard.push(text(data)))
  late.close()
  await server.restart()
  await eventually(() => broadcast.status() === 'connected', { timeoutMs: 2000, what: 'back' })
  broadcast.publish('t.x', Buffer.from('1'))
  broadcast.publish('t.closed', Buffer.from('never'))
  broadcast.publish('t.while-down', Buffer.from('2'))
  await settled(broadcast)
  assert.deepEqual(heard, ['1', '2'])
})

test('broadcast: a request under way when the server dies ends at once', async (t) => {
  const server = await startNats(t)
  const broadcast = await connect(t, server.url)
  broadcast.subscribe('t.mute', () => void server.kill())
  await settled(broadcast)
  const startedAtMs = performance.now()
  assert.equal(await broadcast.request('t.mute', HELLO, { timeoutMs: 60_000 }, () => true), false)
  assert.ok(performance.now() - startedAtMs < 10_000)
})

test('broadcast: wrong credentials keep it disconnected, the right ones connect', async (t) => {
  const folder = await temporaryFolder(t)
  const config = join(folder, 'users.conf')
  // The test's own probe comes without a name.
  const users = '[{ user: u, password: secret }, { user: probe, password: x }]'
  writeFileSync(config, `authorization { users: ${users} }\nno_auth_user: probe\n`)
  const server = await startNats(t, { extraArgs: ['-c', config] })
  const link = openNatsLink({ servers: [server.url], user: 'u', password: 'no' })
  t.after(() => link.close())
  await eventually(() => link.lastError(), { timeoutMs: 5000, what: 'refused' })
  assert.match(link.lastError() ?? '', /authorization/i)
  assert.equal(link.status(), 'disconnected')
  const right = await connect(t, server.url, { user: 'u', password: 'secret' })
  assert.equal(right.status(), 'connected')
})

test('broadcast: TLS with files connects, and refuses a server of another authority', async (t) => {
  const folder = await temporaryFolder(t)
  const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
    ...['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate],
  ])
  if (made.status !== 0) return t.skip('openssl is not installed')
  const config = join(folder, 'tls.conf')
  const tls = `tls { cert_file: "${certificate}", key_file: "${key}" }`
  writeFileSync(config, `${tls}\nallow_non_tls: true\n`)
  const server = await startNats(t, { extraArgs: ['-c', config] })
  const trusting = await connect(t, server.url, { tls: { caFile: certificate } })
  assert.equal(trusting.status(), 'connected')
  const link = openNatsLink({ servers: [server.url], tls: {} })
  t.after(() => link.close())
  await eventually(() => link.lastError(), { timeoutMs: 5000, what: 'refused' })
  assert.match(link.lastError() ?? '', /self.signed/i)
})

test('broadcast: a credentials file that cannot be read is an error that names it', () => {
  const open = () =>
    openNatsLink({ servers: ['nats://127.0.0.1:1'], credsFile: '/nowhere/x.creds' })
  assert.throws(open, (error) => isTenureError(error, 'invalid-config'))
})

test('broadcast: closed, it is closed for good and says so', async (t) => {
  const { url } = await startNats(t)
  const [a, b] = [await connect(t, url), await connect(t, url)]
  const heard: string[] = []
  b.subscribe('t.x', ({ data }) => heard.push(text(data)))
  await settled(b)
  a.publish('t.x', HELLO)
  await a.close()
  assert.equal(a.status(), 'closed')
  assert.equal(a.publish('t.x', HELLO), false)
  assert.equal(await a.request('t.x', HELLO, { timeoutMs: 5000 }, () => true), false)
  await eventually(() => heard.length === 1, { timeoutMs: 5000, what: 'flushed by close' })
})

/** Resolves once the server has dealt with everything that this connection sent. */
async function settled(broadcast: Broadcast): Promise<void> {
  const subject = `t.settled.${Math.random()}`
  const subscription = broadcast.subscribe(subject, (message) => message.respond(HELLO))
  assert.equal(await broadcast.request(subject, HELLO, { timeoutMs: 5000 }, () => true), true)
  subscription.close()
}
