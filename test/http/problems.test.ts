// Plan: send what must be refused, once for each status; compare code, named fields and headers.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isLoopbackHost } from '../../src/http/access.ts'
import { serveGroup } from './served-group.ts'

const GROUP = '/v1/groups/orders'
const TOKEN = 'correct-horse'
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe('refusals over HTTP', () => {
  test('bad input, wherever it stands, gets 400 with the field named', async (t) => {
    const { group, send } = await serveGroup(t)
    const cases: [Parameters<typeof send>, string[]][] = [
      [['GET', `${GROUP}/partitions?limit=0`], ['limit']],
      [['GET', `${GROUP}/partitions?limit=1001`], ['limit']],
      [['GET', `${GROUP}/partitions?limit=many`], ['limit']],
      [
        ['GET', `${GROUP}/partitions?cursor=x&state=lost`],
        ['state', 'cursor'],
      ],
      [['GET', `${GROUP}/partitions?onwer=orders-0`], ['onwer']],
      [['GET', `${GROUP}/partitions/x`], ['partition']],
      [['GET', `${GROUP}/partitions/-1`], ['partition']],
      [['GET', `${GROUP}/owner`], ['key']],
      [['GET', `${GROUP}/owner?key=`], ['key']],
      [['GET', `${GROUP}/owner?key=a&keys=b`], ['keys']],
      [['GET', `${GROUP}/members?page=2`], ['page']],
      [['GET', `${GROUP}/events?after=soon`], ['after']],
      [
        ['POST', `${GROUP}/rebalances`, { dryrun: true, reason: 7 }],
        ['dryrun', 'reason'],
      ],
      [['POST', `${GROUP}/rebalances`, { dryRun: 'true' }], ['dryRun']],
      [['POST', `${GROUP}/rebalances`, { kind: { type: 'shuffle' } }], ['kind.type']],
      [['POST', `${GROUP}/rebalances`, { kind: { type: 'move', to: 'a' } }], ['kind.partition']],
      [['POST', `${GROUP}/rebalances`, { kind: { type: 'drain', member: '-' } }], ['kind.member']],
      [['POST', `${GROUP}/rebalances`, []], ['body']],
      [['POST', `${GROUP}/rebalances`, {}, { 'idempotency-key': 'a/b' }], ['idempotency-key']],
      [['POST', `${GROUP}/partitions/1/move`, {}], ['to']],
      [['PUT', `${GROUP}/freeze`, { untilMs: 'soon' }], ['untilMs']],
      [['PATCH', `${GROUP}/config`, { drain: { deadline: 5 } }], ['drain.deadline']],
      [['PATCH', `${GROUP}/config`, {}], ['body']],
      [['PUT', `${GROUP}/members/a%20b/cordon`], ['member']],
    ]
    for (const [request, fields] of cases) {
      const { status, headers, body } = await send(...request)
      const label = JSON.stringify(request)
      assert.equal(status, 400, label)
      assert.equal(headers['content-type'], 'application/problem+json; charset=utf-8', label)
      assert.equal(body.code, 'invalid-argument', label)
      assert.deepEqual(
        body.errors.map((each: { field: string }) => each.field),
        fields,
        label,
      )
      for (const field of fields) assert.ok(body.detail.includes(field), body.detail)
    }
    assert.deepEqual(group.calls, [])
  })

  test('an unknown field, its neighbours known, is answered with the known names', async (t) => {
    const { get } = await serveGroup(t)
    const { body } = await get(`${GROUP}/partitions?onwer=orders-0`)
    assert.deepEqual(body.errors, [
      { field: 'onwer', message: 'is not known here: use owner, state, moving, limit, cursor' },
    ])
  })

  test('what does not exist, group, partition, member, rebalance or route, gets 404', async (t) => {
    const { send } = await serveGroup(t)
    const cases: [Parameters<typeof send>, string][] = [
      [['GET', '/v1/groups/none'], 'unknown-group'],
      [['GET', '/v1/groups/none/owner?key=a'], 'unknown-group'],
      [['GET', '/v1/groups/none/events'], 'unknown-group'],
      [['PUT', '/v1/groups/none/freeze'], 'unknown-group'],
      [['GET', `${GROUP}/partitions/8`], 'unknown-partition'],
      [['GET', `${GROUP}/members/orders-9`], 'unknown-member'],
      [['GET', `${GROUP}/rebalances/none`], 'unknown-rebalance'],
      [['POST', `${GROUP}/rebalances/none/cancel`], 'unknown-rebalance'],
      [['GET', '/v2/groups'], 'unknown-route'],
      [['POST', `${GROUP}/nothing`, { a: 1 }], 'unknown-route'],
    ]
    for (const [request, code] of cases) {
      const { status, body } = await send(...request)
      assert.deepEqual([status, body.code], [404, code], JSON.stringify(request))
      assert.ok(body.detail.length > 10)
      assert.equal(typeof body.requestId, 'string')
    }
  })

  test('a dry run that names what does not exist, gets 404', async (t) => {
    const { send } = await serveGroup(t)
    const dry = (kind: object) => send('POST', `${GROUP}/rebalances`, { dryRun: true, kind })
    const partition = await dry({ type: 'move', partition: 8, to: 'orders-0' })
    const member = await dry({ type: 'move', partition: 1, to: 'orders-9' })
    assert.deepEqual(
      [partition.status, partition.body.code, member.status, member.body.code],
      [404, 'unknown-partition', 404, 'unknown-member'],
    )
  })

  test('a wrong method, on a known path, gets 405 with Allow', async (t) => {
    const { send } = await serveGroup(t)
    const one = await send('DELETE', `${GROUP}/config`)
    assert.deepEqual(
      [one.status, one.body.code, one.headers['allow']],
      [405, 'method-not-allowed', 'GET, HEAD, OPTIONS, PATCH'],
    )
    const other = await send('POST', `${GROUP}/owner?key=a`, 'text', { 'content-type': 'x/y' })
    assert.deepEqual([other.status, other.headers['allow']], [405, 'GET, HEAD, OPTIONS'])
    const asked = await send('OPTIONS', `${GROUP}/freeze`)
    assert.deepEqual([asked.status, asked.headers['allow']], [204, 'DELETE, OPTIONS, PUT'])
  })

  test('an admin side that refuses, for each reason, gets its status and code', async (t) => {
    const { group, send } = await serveGroup(t)
    const cases = [
      ['unknown-partition', 404],
      ['unknown-member', 404],
      ['conflict', 409],
      ['precondition-failed', 412],
      ['invalid-config', 400],
      ['invalid-argument', 400],
    ] as const
    for (const [code, expected] of cases) {
      group.refusal = { ok: false, code, detail: `because of ${code}` }
      const { status, body } = await send('PUT', `${GROUP}/members/orders-0/cordon`)
      assert.deepEqual([status, body.code, body.detail], [expected, code, `because of ${code}`])
    }
  })

  test('a change, store away, gets 503 with Retry-After while reads still answer', async (t) => {
    const { group, get, send } = await serveGroup(t)
    group.refusal = {
      ...{ ok: false, code: 'store-unreachable', detail: 'no quorum: try again' },
      retryAfterMs: 2500,
    }
    group.stale = true
    const { status, headers, body } = await send('POST', `${GROUP}/rebalances`)
    assert.deepEqual([status, headers['retry-after'], body.code], [503, '3', 'store-unreachable'])
    const read = await get(`${GROUP}/partitions/1`)
    assert.deepEqual([read.status, read.body.stale], [200, true])
  })

  test('a change with If-Match, map gone on, gets 412 and changes nothing', async (t) => {
    const { group, send } = await serveGroup(t)
    const put = (ifMatch: string) =>
      send('PUT', `${GROUP}/freeze`, undefined, { 'if-match': ifMatch })
    const old = await put('"1764440000.99"')
    assert.deepEqual([old.status, old.body.code, group.calls], [412, 'precondition-failed', []])
    assert.equal((await put('W/"1764440000.100"')).status, 412)
    assert.equal((await put('"1764440000.100"')).status, 200)
    assert.equal((await put('*')).status, 200)
    assert.equal(group.calls.length, 2)
  })

  test('bodies that are too large, not JSON, or broken, get 413, 415 and 400', async (t) => {
    const { send } = await serveGroup(t)
    const post = (body: string, type: string) =>
      send('POST', `${GROUP}/rebalances`, body, { 'content-type': type })
    const large = await post(`{"reason":"${'x'.repeat(70_000)}"}`, 'application/json')
    const text = await post('{}', 'text/plain')
    const broken = await post('{"reason":', 'application/json')
    assert.deepEqual(
      [large, text, broken].map(({ status, body }) => [status, body.code]),
      [
        [413, 'body-too-large'],
        [415, 'media-type-unsupported'],
        [400, 'invalid-argument'],
      ],
    )
    const badPath = await send('GET', '/v1/groups/%zz')
    assert.deepEqual([badPath.status, badPath.body.code], [400, 'invalid-argument'])
  })

  test('an unexpected failure gets 500 without its text, which the log has', async (t) => {
    const logged: object[] = []
    const { group, send } = await serveGroup(t, {
      logger: { error: (context) => logged.push(context) },
    })
    Object.defineProperty(group, 'version', {
      get: () => {
        throw new Error('secret of the machine')
      },
    })
    const { status, text, body } = await send('GET', GROUP)
    assert.deepEqual([status, body.code], [500, 'internal'])
    assert.ok(!text.includes('secret') && !text.includes('.ts'))
    const [entry] = logged as [{ err: Error; requestId: string }]
    assert.deepEqual(
      [entry.err.message, entry.requestId],
      ['secret of the machine', body.requestId],
    )
  })
})

describe('who may change things over HTTP', () => {
  test('a changing request, token configured, needs exactly that token', async (t) => {
    const { group, send } = await serveGroup(t, { access: { bearerToken: TOKEN } })
    const put = (headers: Record<string, string>) =>
      send('PUT', `${GROUP}/freeze`, undefined, headers)
    for (const headers of [{}, bearer('wrong'), { authorization: `Basic ${TOKEN}` }]) {
      const { status, body, headers: replied } = await put(headers as Record<string, string>)
      assert.deepEqual([status, body.code], [401, 'unauthorized'])
      assert.equal(replied['www-authenticate'], 'Bearer realm="tenure"')
      assert.ok(!JSON.stringify(body).includes(TOKEN))
    }
    assert.deepEqual(group.calls, [])
    assert.equal((await put(bearer(TOKEN))).status, 200)
  })

  test('a public listener, no token configured, refuses every change and answers reads', async (t) => {
    const { group, server, get, send } = await serveGroup(t, { host: '0.0.0.0' })
    await server.app.ready()
    const document = JSON.parse((await get('/openapi.json')).text)
    let changes = 0
    for (const [path, operations] of Object.entries<Record<string, { tags: string[] }>>(
      document.paths,
    )) {
      for (const [method, { tags }] of Object.entries(operations)) {
        if (!tags.includes('changes')) continue
        changes++
        const url = path
          .replace('{group}', 'orders')
          .replace('{partition}', '1')
          .replace(/\{\w+\}/, 'orders-0')
        const { status, body } = await send(method.toUpperCase() as 'PUT', url)
        assert.deepEqual([status, body.code], [403, 'unauthorized'], `${method} ${url}`)
        assert.match(body.detail, /configure a token/)
      }
    }
    assert.equal(changes, 16)
    assert.deepEqual(group.calls, [])
    assert.equal((await get(GROUP)).status, 200)
  })

  test('a public listener, token configured, takes changes with it', async (t) => {
    const access = { bearerToken: TOKEN }
    const { send } = await serveGroup(t, { host: '0.0.0.0', access })
    const headers = { ...bearer(TOKEN), host: 'tenure.example:8080' }
    assert.equal((await send('PUT', `${GROUP}/freeze`, undefined, headers)).status, 200)
  })

  test('a change on loopback, caused by a foreign page, is refused', async (t) => {
    const { send } = await serveGroup(t)
    const put = (headers: Record<string, string>) =>
      send('PUT', `${GROUP}/freeze`, undefined, headers)
    assert.equal((await put({ host: 'evil.example' })).status, 403)
    assert.equal((await put({ 'sec-fetch-site': 'cross-site' })).status, 403)
    assert.equal((await put({ 'sec-fetch-site': 'same-origin' })).status, 200)
    assert.equal((await put({ host: '[::1]:8080' })).status, 200)
  })

  test('hosts, in every spelling, count as loopback only where they are', () => {
    for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '127.8.9.10', '::1', '[::1]']) {
      assert.equal(isLoopbackHost(host), true, host)
    }
    assert.equal(isLoopbackHost('::ffff:127.0.0.1'), true)
    const others = [
      '0.0.0.0',
      '::',
      '',
      '10.0.0.1',
      '127.0.0.1.example',
      'localhost.example',
      '128.0.0.1',
    ]
    for (const host of others) assert.equal(isLoopbackHost(host), false, host)
  })
})
