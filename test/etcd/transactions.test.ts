import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Compare } from '../../src/core/transaction.ts'
import { setNoSpaceAlarm } from '../support/etcd-admin.ts'
import { startEtcd } from '../support/servers.ts'
import { newSession, openStore, put, read, run, succeeded, TIMEOUT } from './store-access.ts'

const etcd = await startEtcd({ after })
const store = openStore({ after }, [etcd.endpoint])

test('each compare, on a key with a lease, one without, and an absent one, holds as the contract says', async () => {
  const session = newSession()
  const other = newSession()
  succeeded(await store.openLease(session, 60_000, TIMEOUT))
  await put(store, '/compare/leased', 'alive', session)
  await put(store, '/compare/plain', '10')

  const holds = async (compare: Compare) => (await run(store, [compare], [])).succeeded
  const table: readonly (readonly [boolean, Compare])[] = [
    [true, { type: 'value-equals', key: '/compare/plain', value: '10' }],
    [false, { type: 'value-equals', key: '/compare/plain', value: '1' }],
    [false, { type: 'value-equals', key: '/compare/none', value: '' }],
    [true, { type: 'absent', key: '/compare/none' }],
    [false, { type: 'absent', key: '/compare/plain' }],
    [true, { type: 'present', key: '/compare/plain' }],
    [false, { type: 'present', key: '/compare/none' }],
    [true, { type: 'lease-equals', key: '/compare/leased', session }],
    [false, { type: 'lease-equals', key: '/compare/leased', session: other }],
    [false, { type: 'lease-equals', key: '/compare/plain', session }],
    [false, { type: 'lease-equals', key: '/compare/none', session }],
    [false, { type: 'lease-differs', key: '/compare/leased', session }],
    [true, { type: 'lease-differs', key: '/compare/leased', session: other }],
    [true, { type: 'lease-differs', key: '/compare/plain', session }],
    [true, { type: 'lease-differs', key: '/compare/none', session }],
  ]
  for (const [expected, compare] of table) {
    assert.equal(await holds(compare), expected, JSON.stringify(compare))
  }
})

test('operations of a transaction, summary and unicode among them, answer at their own places', async () => {
  const session = newSession()
  succeeded(await store.openLease(session, 60_000, TIMEOUT))
  const first = await put(store, '/places/a', 'grüße 🐘', session)
  const second = await put(store, '/places/b', 'x')
  await put(store, '/placesnot', 'outside the prefix')

  const { results } = await run(
    store,
    [],
    [
      { type: 'summary', prefix: '/places/' },
      { type: 'get', key: '/places/a' },
      { type: 'delete', key: '/places/b' },
      { type: 'summary', prefix: '/nothing/' },
      { type: 'get', key: '/places/none' },
    ],
  )
  assert.deepEqual(results, [
    { type: 'summary', count: 2, newestModRevision: second },
    {
      type: 'get',
      found: {
        key: '/places/a',
        value: 'grüße 🐘',
        createRevision: first,
        modRevision: first,
        session,
      },
    },
    { type: 'delete', deleted: 1 },
    { type: 'summary', count: 0, newestModRevision: 0 },
    { type: 'get', found: null },
  ])
})

test('nested transactions, one of three with a failing compare, succeed and fail each for itself', async () => {
  await put(store, '/nested/1', 'old')
  await put(store, '/nested/2', 'changed by another')
  await put(store, '/nested/3', 'old')
  const { succeeded: outer, results } = await run(
    store,
    [],
    ['1', '2', '3'].map((name) => ({
      type: 'transaction' as const,
      compare: [{ type: 'value-equals' as const, key: `/nested/${name}`, value: 'old' }],
      success: [{ type: 'put' as const, key: `/nested/${name}`, value: 'new' }],
      failure: [{ type: 'get' as const, key: `/nested/${name}` }],
    })),
  )
  assert.equal(outer, true)
  assert.deepEqual(
    results.map((result) => result.type === 'transaction' && result.succeeded),
    [true, false, true],
  )
  assert.equal(await read(store, '/nested/1'), 'new')
  assert.equal(await read(store, '/nested/2'), 'changed by another')
  assert.equal(await read(store, '/nested/3'), 'new')
})

test('128 operations go through, one more is refused', async () => {
  const puts = (count: number) => ({
    compare: [],
    success: Array.from({ length: count }, (_, index) => ({
      type: 'put' as const,
      key: `/limit/${index}`,
      value: '',
    })),
    failure: [],
  })
  assert.equal((await store.transact(puts(128), TIMEOUT)).ok, true)
  const refused = await store.transact(puts(129), TIMEOUT)
  assert.equal(refused.ok === false && refused.reason, 'refused')
})

test('a put under a lease that does not live is refused, with its siblings', async () => {
  const refused = await store.transact(
    {
      compare: [],
      success: [
        { type: 'put', key: '/dead/sibling', value: '' },
        { type: 'put', key: '/dead/key', value: '', session: newSession() },
      ],
      failure: [],
    },
    TIMEOUT,
  )
  assert.equal(refused.ok === false && refused.reason, 'refused')
  assert.equal(await read(store, '/dead/sibling'), null)
})

test('a server out of space refuses writes and says so in its status', async () => {
  await setNoSpaceAlarm(etcd.endpoint, true)
  const refused = await store.transact(
    { compare: [], success: [{ type: 'put', key: '/space', value: '' }], failure: [] },
    TIMEOUT,
  )
  const status = succeeded(await store.status(TIMEOUT)).value
  await setNoSpaceAlarm(etcd.endpoint, false)
  assert.equal(refused.ok === false && refused.reason, 'refused')
  assert.deepEqual(status.alarms, ['NOSPACE'])
  assert.equal(status.leaderKnown, true)
  assert.match(status.version, /^\d+\.\d+\.\d+/)
  assert.ok(status.databaseBytes > 0)
})

test('a list in pages pinned to the first, with changes between them, shows one state, each key once', async () => {
  const count = 250
  const key = (index: number) => `/pages/${String(index).padStart(6, '0')}`
  for (let start = 0; start < count; start += 125) {
    await run(
      store,
      [],
      Array.from({ length: 125 }, (_, index) => ({
        type: 'put' as const,
        key: key(start + index),
        value: 'before',
      })),
    )
  }
  const first = succeeded(await store.list({ prefix: '/pages/', limit: 100 }, TIMEOUT))
  await put(store, key(150), 'after')
  await run(store, [], [{ type: 'delete', key: key(200) }])
  const entries = [...first.value.entries]
  let more = first.value.more
  while (more) {
    const page = succeeded(
      await store.list(
        {
          prefix: '/pages/',
          limit: 100,
          after: entries.at(-1)?.key ?? '',
          atRevision: first.revision,
        },
        TIMEOUT,
      ),
    )
    entries.push(...page.value.entries)
    more = page.value.more
  }
  assert.deepEqual(
    entries.map((entry) => entry.key),
    Array.from({ length: count }, (_, index) => key(index)),
  )
  assert.ok(entries.every((entry) => entry.value === 'before'))
})
