// Plan: ask over sockets, where a plain look-up is answered before the framework, and in process, where the
// route answers; both must say the same. Then everything that is not plain over sockets.
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { serveGroup } from './served-group.ts'

const OWNER = '/v1/groups/orders/owner'

async function listeningGroup(t: TestContext) {
  const errors: string[] = []
  const served = await serveGroup(t, { logger: { error: (_context, text) => errors.push(text) } })
  const { port } = await served.server.listen()
  const ask = async (path: string, options: RequestInit = {}) => {
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, options)
    const headers = Object.fromEntries(reply.headers)
    return { status: reply.status, headers, text: await reply.text() }
  }
  return { ...served, errors, ask }
}

function withoutMoment(text: string) {
  const { asOfMs, ...rest } = JSON.parse(text)
  assert.ok(Math.abs(Date.now() - asOfMs) < 60_000)
  return rest
}

describe('plain look-ups', () => {
  test('a plain look-up answers what the route answers', async (t) => {
    const { ask, get, recorded } = await listeningGroup(t)
    const [over, routed] = [await ask(`${OWNER}?key=abc`), await get(`${OWNER}?key=abc`)]
    assert.deepEqual([over.status, routed.status], [200, 200])
    assert.deepEqual(withoutMoment(over.text), withoutMoment(routed.text))
    for (const name of ['content-type', 'etag', 'content-length']) {
      assert.equal(over.headers[name], String(routed.headers[name]), name)
    }
    const seen = recorded.map((event) => event.type === 'http-request' && event.status)
    assert.deepEqual(seen, [200, 200])
  })

  test('a look-up that is not plain is answered by the route', async (t) => {
    const { ask } = await listeningGroup(t)
    const cases: [string, number, Parameters<typeof ask>[1]?][] = [
      [`${OWNER}?key=a%20b`, 200],
      [`${OWNER}?key=a+b`, 200],
      [`${OWNER}?key=${'k'.repeat(4096)}`, 200],
      [`${OWNER}?key=${'k'.repeat(4097)}`, 400],
      [`${OWNER}?key=`, 400],
      [`${OWNER}?key=a&key=b`, 400],
      [`${OWNER}?key=a&other=b`, 400],
      ['/v1/groups/none/owner?key=abc', 404],
      [`${OWNER}?key=abc`, 200, { method: 'HEAD' }],
      [`${OWNER}?key=abc`, 405, { method: 'POST' }],
      [`${OWNER}?key=a%20b`, 304, { headers: { 'if-none-match': '*' } }],
    ]
    for (const [path, status, options] of cases) {
      const reply = await ask(path, options)
      assert.equal(reply.status, status, `${options?.method ?? 'GET'} ${path.slice(0, 60)}`)
    }
  })

  test('a look-up by who knows the version answers 304 either way', async (t) => {
    const { ask, send, recorded } = await listeningGroup(t)
    const headers = { 'if-none-match': '*' }
    const over = await ask(`${OWNER}?key=abc`, { headers })
    const routed = await send('GET', `${OWNER}?key=abc`, undefined, headers)
    for (const { status, text, headers } of [over, routed]) {
      assert.deepEqual([status, text, headers['content-type']], [304, '', undefined])
    }
    assert.ok(over.headers['etag'] !== undefined)
    assert.equal(over.headers['etag'], routed.headers['etag'])
    const seen = recorded.map((event) => event.type === 'http-request' && event.status)
    assert.deepEqual(seen, [304, 304])
  })

  test('a look-up that fails answers 500 and leaves the server standing', async (t) => {
    const { ask, group, errors } = await listeningGroup(t)
    const kept = group.partitions.splice(0)
    assert.equal((await ask(`${OWNER}?key=abc`)).status, 500)
    assert.deepEqual(errors, ['failed'])
    group.partitions.push(...kept)
    assert.equal((await ask(`${OWNER}?key=abc`)).status, 200)
  })

  test('a look-up, telemetry failing, is answered and the failure logged', async (t) => {
    const { ask, recorded, errors } = await listeningGroup(t)
    recorded.push = () => {
      throw new Error('telemetry is broken')
    }
    assert.equal((await ask(`${OWNER}?key=abc`)).status, 200)
    assert.deepEqual(errors, ['failed'])
  })
})
