// Plan: follow a group over real sockets on loopback; break off, resume, fall behind, close.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import type { HttpServerOptions } from '../../src/http/http-server.ts'
import { eventually } from '../support/eventually.ts'
import { readEvents } from './event-reader.ts'
import { ownedBy, vacant } from './plain-groups.ts'
import { serveGroup } from './served-group.ts'

const INCARNATION = 1_764_440_000
const version = (revision: number) => `${INCARNATION}.${revision}`
const within = (what: string) => ({ timeoutMs: 5000, what })

async function listen(t: TestContext, options: Partial<HttpServerOptions> = {}) {
  const served = await serveGroup(t, options)
  const { url } = await served.server.listen()
  const eventsUrl = `${url}/v1/groups/orders/events`
  const follow = (lastEventId?: string, query = '') => {
    const reader = readEvents(eventsUrl + query, lastEventId)
    t.after(() => reader.request.destroy())
    return reader
  }
  return { ...served, url, follow }
}

const eventsOf = (reader: ReturnType<typeof readEvents>) =>
  reader.events.map(({ event, id }) => `${event} ${id}`)

describe('event stream over HTTP', () => {
  test('a new reader, nothing to resume, gets start and then each change', async (t) => {
    const { group, recorded, follow } = await listen(t)
    const reader = follow()
    await eventually(() => reader.events.length === 1, within('start'))
    group.change(vacant(3, 'gone'))
    group.change(ownedBy('orders-0', 3), { partition: 4, generation: 6 })
    await eventually(() => reader.events.length === 3, within('two changes'))
    assert.deepEqual(eventsOf(reader), [
      `start ${version(100)}`,
      `map ${version(101)}`,
      `map ${version(102)}`,
    ])
    assert.deepEqual(reader.events[2]?.data, {
      version: version(102),
      partitions: [group.partitions[3], group.partitions[4]],
      last: true,
    })
    assert.equal(recorded.filter((event) => event.type === 'http-request').length, 1)
  })

  test('a reader that comes back, its version still kept, gets what it missed once', async (t) => {
    const { group, follow } = await listen(t)
    for (let round = 0; round < 3; round++) group.change({ partition: round })
    for (const reader of [follow(version(101)), follow(undefined, `?after=${version(101)}`)]) {
      await eventually(() => reader.events.length === 3, within('start and two changes'))
      assert.deepEqual(eventsOf(reader), [
        `start ${version(101)}`,
        `map ${version(102)}`,
        `map ${version(103)}`,
      ])
    }
    const current = follow(version(103))
    await eventually(() => current.events.length === 1, within('start'))
    group.change({ partition: 1 })
    await eventually(() => current.events.length === 2, within('the next change'))
    assert.deepEqual(eventsOf(current), [`start ${version(103)}`, `map ${version(104)}`])
  })

  test('a reader that comes back, too old or from another map, gets reset and goes on', async (t) => {
    const { group, follow } = await listen(t)
    for (let round = 0; round < 8; round++) group.change({ partition: round })
    const old = follow(version(101))
    const foreign = follow(`${INCARNATION + 5}.7`)
    for (const reader of [old, foreign]) {
      await eventually(() => reader.events.length === 1, within('reset'))
    }
    group.change({ partition: 0 })
    for (const reader of [old, foreign]) {
      await eventually(() => reader.events.length === 2, within('the next change'))
      assert.deepEqual(eventsOf(reader), [`reset ${version(108)}`, `map ${version(109)}`])
    }
  })

  test('a change of many partitions, comes in parts of which the last has the id', async (t) => {
    const { group, follow } = await listen(t)
    const reader = follow()
    await eventually(() => reader.events.length === 1, within('start'))
    group.change(...Array.from({ length: 1100 }, (_, at) => ({ ...ownedBy('orders-0', at) })))
    await eventually(() => reader.events.length === 4, within('three parts'))
    assert.deepEqual(
      reader.events.slice(1).map(({ id, data }) => [id, data.partitions?.length]),
      [
        [null, 500],
        [null, 500],
        [version(101), 100],
      ],
    )
  })

  test('a silent stream, shows comments with the age of the map', async (t) => {
    const { follow } = await listen(t, { heartbeatMs: 5 })
    const reader = follow()
    await eventually(() => reader.comments.length >= 2, within('two comments'))
    assert.equal(reader.comments[0], ': ageMs=12 stale=false')
  })

  test('a reader that goes away, leaves no listener behind', async (t) => {
    const { group, follow } = await listen(t)
    const reader = follow()
    await eventually(() => group.listeners() === 1, within('listening'))
    reader.request.destroy()
    await eventually(() => group.listeners() === 0, within('not listening'))
  })

  test('a reader that takes nothing, then reads on, misses no version or is reset', async (t) => {
    const { group, follow } = await listen(t)
    const reader = follow()
    await eventually(() => reader.events.length === 1, within('start'))
    const socket = reader.request.socket
    socket?.pause()
    // Far more than sockets buffer, and more changes than the group keeps.
    const why = 'x'.repeat(100_000)
    for (let round = 0; round < 200; round++) group.change(vacant(round % 8, why))
    socket?.resume()
    const last = version(300)
    await eventually(
      () => reader.events.at(-1)?.data.version === last || null,
      within('the current version'),
    )
    const resets = reader.events.filter(({ event }) => event === 'reset')
    assert.equal(resets.length, 1)
    assert.ok(reader.events.length < 200, `${reader.events.length} events were queued for it`)
  })

  test('a version that is none, is refused before the stream begins', async (t) => {
    const { url } = await listen(t)
    const headers = { 'last-event-id': 'yesterday' }
    const reply = await fetch(`${url}/v1/groups/orders/events`, { headers })
    const body = (await reply.json()) as { errors: { field: string }[] }
    assert.deepEqual([reply.status, body.errors[0]?.field], [400, 'last-event-id'])
  })
})

describe('HTTP server life', () => {
  test('a server that closes, ends streams and idle connections and frees its port', async (t) => {
    const { server, url, follow } = await listen(t)
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    const reader = follow()
    await eventually(() => reader.events.length === 1, within('start'))
    await server.close()
    await eventually(() => reader.ended, within('stream ended'))
    await assert.rejects(fetch(`${url}/livez`))
    await server.close()
  })

  test('a server that closes, one request never finished, cuts it after the timeout', async (t) => {
    const { server, url } = await listen(t, { closeTimeoutMs: 50 })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    let cut = false
    socket.on('close', () => {
      cut = true
    })
    socket.on('error', () => undefined)
    socket.write('POST /v1/groups/orders/rebalances HTTP/1.1\r\nHost: localhost\r\n')
    socket.write('Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{')
    await eventually(() => socket.bytesWritten > 100 && !socket.connecting, within('sent'))
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    await server.close()
    await eventually(() => cut, within('cut'))
  })

  test('a port that is taken, is an error of listen and not of the process', async (t) => {
    const { url } = await listen(t)
    const other = await serveGroup(t, { port: Number(new URL(url).port) })
    await assert.rejects(other.server.listen(), /EADDRINUSE/)
  })
})
