// Plan: ask every reading route over an in-process server on a plain group; compare whole replies.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ownedBy, SESSION, vacant } from './plain-groups.ts'
import { serveGroup } from './served-group.ts'

const VERSION = '1764440000.100'

describe('reads over HTTP', () => {
  test('groups, one standing, lists its summary with version and age', async (t) => {
    const { get } = await serveGroup(t)
    const reply = await get('/v1/groups')
    assert.equal(reply.status, 200)
    assert.equal(reply.body.groups.length, 1)
    const { asOfMs, ...summary } = reply.body.groups[0]
    assert.ok(Math.abs(Date.now() - asOfMs) < 60_000)
    assert.deepEqual(summary, {
      group: 'orders',
      partitions: 8,
      owned: 8,
      vacant: 0,
      moving: 0,
      halted: 0,
      notServing: 0,
      members: 2,
      rebalancer: SESSION,
      incarnation: 1_764_440_000,
      frozen: null,
      disabled: null,
      alarms: [],
      version: VERSION,
      ageMs: 12,
      stale: false,
    })
  })

  test('a read, map stale, still answers and says so', async (t) => {
    const { group, get } = await serveGroup(t)
    group.stale = true
    group.ageMs = 90_000
    const { status, body } = await get('/v1/groups/orders')
    assert.deepEqual([status, body.stale, body.ageMs], [200, true, 90_000])
  })

  test('every read of a group carries the version as ETag and answers 304 to it', async (t) => {
    const { group, get, send } = await serveGroup(t)
    group.rebalances = [
      {
        ...{ id: 'r1', kind: { type: 'balance' }, state: 'done', reason: '', by: 'x', planned: 1 },
        ...{ moved: 1, requestedAtMs: 1, finishedAtMs: 2, note: '' },
      },
    ]
    const paths = ['', '/config', '/partitions', '/partitions/3', '/owner?key=a', '/members']
    for (const path of [...paths, '/members/orders-0', '/rebalances', '/rebalances/r1']) {
      const url = `/v1/groups/orders${path}`
      const full = await get(url)
      assert.equal(full.status, 200, url)
      assert.equal(full.headers['etag'], `"${VERSION}"`, url)
      assert.equal(full.body.version, VERSION, url)
      assert.equal(typeof full.body.asOfMs, 'number', url)
      assert.equal(full.body.stale, false, url)
      for (const known of [`"${VERSION}"`, `W/"${VERSION}"`, `"1.2", "${VERSION}"`, '*']) {
        const unchanged = await send('GET', url, undefined, { 'if-none-match': known })
        assert.deepEqual([unchanged.status, unchanged.text], [304, ''], `${url} ${known}`)
      }
      const changed = await send('GET', url, undefined, { 'if-none-match': '"1764440000.99"' })
      assert.equal(changed.status, 200, url)
    }
  })

  test('a partition, owned, answers everything that is known of it', async (t) => {
    const { group, get } = await serveGroup(t)
    const { body } = await get('/v1/groups/orders/partitions/3')
    assert.deepEqual(body.partition, { ...group.partitions[3] })
  })

  test('a partition, vacant, answers 200 with owner null and why', async (t) => {
    const { group, get } = await serveGroup(t)
    group.change(vacant(3, 'its owner orders-1 is gone; an election runs'))
    const one = await get('/v1/groups/orders/partitions/3')
    assert.equal(one.status, 200)
    assert.deepEqual(
      [one.body.partition.owner, one.body.partition.why],
      [null, 'its owner orders-1 is gone; an election runs'],
    )
    const { asOfMs: _, ...owner } = (await get('/v1/groups/orders/owner?key=abc')).body
    assert.deepEqual(owner, {
      group: 'orders',
      partition: 3,
      owner: null,
      token: null,
      phase: 'vacant',
      serving: false,
      why: 'its owner orders-1 is gone; an election runs',
      version: '1764440000.101',
      ageMs: 12,
      stale: false,
    })
  })

  test('an owner, address with quotes in it, answers sound JSON with its token', async (t) => {
    const { group, get } = await serveGroup(t)
    const owned = ownedBy('orders-1', 3)
    group.change({ ...owned, owner: { ...owned.owner, address: 'say "hi"\n' } as never })
    const { asOfMs: _, ...owner } = (await get('/v1/groups/orders/owner?key=abc')).body
    assert.deepEqual(owner, {
      group: 'orders',
      partition: 3,
      owner: { member: 'orders-1', address: 'say "hi"\n', live: true },
      token: { incarnation: 1_764_440_000, generation: 5, session: SESSION },
      phase: 'owned',
      serving: true,
      why: null,
      version: '1764440000.101',
      ageMs: 12,
      stale: false,
    })
  })

  test('pages of partitions, followed by cursor, show each once and then end', async (t) => {
    const { get } = await serveGroup(t)
    const seen: number[] = []
    let cursor = ''
    for (let page = 0; page < 3; page++) {
      const { body } = await get(`/v1/groups/orders/partitions?limit=3${cursor}`)
      seen.push(...body.partitions.map((each: { partition: number }) => each.partition))
      cursor = `&cursor=${body.nextCursor}`
      if (body.nextCursor === null) break
    }
    assert.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6, 7])
    assert.equal(cursor, '&cursor=null')
  })

  test('a page that ends with the last partition, names no next page', async (t) => {
    const { get } = await serveGroup(t)
    const { body } = await get('/v1/groups/orders/partitions?limit=8')
    assert.deepEqual([body.partitions.length, body.nextCursor], [8, null])
  })

  test('partitions, filtered by owner, state and moving, show those alone', async (t) => {
    const { group, get } = await serveGroup(t)
    const move = { id: 'm', to: null, reason: 'leave', by: 'x', rewrites: 0, atMs: 1 } as const
    group.change({ partition: 4, phase: 'revoking', move }, vacant(5, 'no member'))
    const numbers = async (query: string) =>
      (await get(`/v1/groups/orders/partitions?${query}`)).body.partitions.map(
        (each: { partition: number }) => each.partition,
      )
    assert.deepEqual(await numbers('owner=orders-0'), [0, 2, 4, 6])
    assert.deepEqual(await numbers('state=vacant'), [5])
    assert.deepEqual(await numbers('moving=true'), [4])
    assert.deepEqual(await numbers('owner=orders-0&moving=false&limit=2&cursor=1'), [2, 6])
    assert.deepEqual(await numbers('owner=nobody'), [])
  })

  test('liveness and readiness, not ready, say so with 200 and 503', async (t) => {
    const { get } = await serveGroup(t, {
      readiness: () => ({ ready: false, reason: 'the map is not listed yet' }),
    })
    assert.equal((await get('/livez')).status, 200)
    const ready = await get('/readyz')
    assert.deepEqual(
      [ready.status, ready.body.code, ready.body.detail, ready.headers['retry-after']],
      [503, 'not-ready', 'the map is not listed yet', '1'],
    )
  })

  test('readiness, ready, says what makes it so', async (t) => {
    const { get } = await serveGroup(t)
    assert.deepEqual((await get('/readyz')).body, { ready: true, reason: 'follows the map' })
  })

  test('metrics answer with their own media type', async (t) => {
    const { get } = await serveGroup(t)
    const reply = await get('/metrics')
    assert.deepEqual(
      [reply.headers['content-type'], reply.text],
      ['text/plain; version=0.0.4', 'tenure_up 1\n'],
    )
  })

  test('each request, answered or refused, is recorded once by its route', async (t) => {
    const { recorded, get, send } = await serveGroup(t)
    await get('/v1/groups/orders/owner?key=abc')
    await get('/v1/groups/none/owner?key=abc')
    await get('/nowhere')
    await send('POST', '/livez')
    const seen = recorded.map((event) => {
      assert.ok(event.type === 'http-request' && event.tookMs >= 0)
      return `${event.method} ${event.route} ${event.status}`
    })
    assert.deepEqual(seen, [
      'GET /v1/groups/:group/owner 200',
      'GET /v1/groups/:group/owner 404',
      'GET unknown 404',
      'POST /livez 405',
    ])
  })
})
