// Plan: make each change once; compare what the admin side was asked for and what was answered.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { memberName } from '../../src/core/ids.ts'
import { serveGroup } from './served-group.ts'

const GROUP = '/v1/groups/orders'
const ASKED = { reason: 'deploy', by: 'ann' }
const BY = { by: 'ann', why: 'deploy' }

describe('changes over HTTP', () => {
  test('marks, set and undone, reach the admin side with who and why', async (t) => {
    const { group, send } = await serveGroup(t)
    const marks: [string, string, unknown[]][] = [
      ['/members/orders-0/cordon', 'Cordon', ['orders-0']],
      ['/disabled', 'Disabled', [null]],
      ['/partitions/3/disabled', 'Disabled', [3]],
    ]
    for (const [path, name, subject] of marks) {
      const set = await send('PUT', GROUP + path, ASKED)
      assert.deepEqual([set.status, set.body], [200, { ...BY, atMs: 1, untilMs: null }])
      const cleared = await send('DELETE', GROUP + path)
      assert.deepEqual([cleared.status, cleared.text], [204, ''])
      assert.deepEqual(group.calls.splice(0), [
        { name: `set${name}`, arguments: [...subject, BY] },
        { name: `clear${name}`, arguments: subject },
      ])
    }
  })

  test('a freeze with an end, without a body, and undone', async (t) => {
    const { group, send } = await serveGroup(t)
    const set = await send('PUT', `${GROUP}/freeze`, { ...ASKED, untilMs: 99 })
    assert.deepEqual([set.status, set.body.untilMs], [200, 99])
    assert.equal((await send('PUT', `${GROUP}/freeze`)).status, 200)
    assert.equal((await send('DELETE', `${GROUP}/freeze`)).status, 204)
    assert.deepEqual(group.calls, [
      { name: 'setFreeze', arguments: [{ ...BY, untilMs: 99 }] },
      { name: 'setFreeze', arguments: [{ by: 'http 127.0.0.1', why: '', untilMs: null }] },
      { name: 'clearFreeze', arguments: [] },
    ])
  })

  test('an eviction and a raised incarnation answer what stands then', async (t) => {
    const { group, send } = await serveGroup(t)
    const evicted = await send('POST', `${GROUP}/members/orders-1/evict`, ASKED)
    assert.deepEqual([evicted.status, evicted.body.why], [202, 'deploy'])
    const raised = await send('POST', `${GROUP}/incarnation/raise`, ASKED)
    assert.deepEqual([raised.status, raised.body], [200, { incarnation: 1_764_440_001 }])
    assert.deepEqual(
      group.calls.map(({ name }) => name),
      ['evict', 'raiseIncarnation'],
    )
  })

  test('settings, some given, reach the admin side alone and the identity may be repeated', async (t) => {
    const { group, send } = await serveGroup(t)
    const settings = { drain: { deadlineMs: 5000 }, budget: { movesPerMinute: 60 } }
    const reply = await send('PATCH', `${GROUP}/config`, { partitions: 8, ...settings })
    assert.equal(reply.status, 200)
    assert.deepEqual(reply.body.config, { ...group.config })
    assert.deepEqual(group.calls, [{ name: 'changeConfig', arguments: [settings] }])
  })

  test('settings of the identity, another value, get 409 that names both', async (t) => {
    const { group, send } = await serveGroup(t)
    const { status, body } = await send('PATCH', `${GROUP}/config`, { partitions: 16 })
    assert.deepEqual(
      [status, body.code, body.errors[0].field],
      [409, 'config-mismatch', 'partitions'],
    )
    assert.match(body.detail, /16.*8/)
    assert.deepEqual(group.calls, [])
  })
})

describe('rebalances over HTTP', () => {
  test('a rebalance, no body, answers 202 with where to look and when', async (t) => {
    const { group, send, get } = await serveGroup(t)
    const { status, headers, body } = await send('POST', `${GROUP}/rebalances`)
    assert.deepEqual(
      [status, headers['location'], headers['retry-after'], body.state, body.kind],
      [202, `${GROUP}/rebalances/rebalance-0`, '1', 'requested', { type: 'balance' }],
    )
    const found = await get(String(headers['location']))
    assert.deepEqual(found.body.rebalance, { ...group.rebalances[0] })
  })

  test('a rebalance with a key, asked for twice, is made once', async (t) => {
    const { group, send } = await serveGroup(t)
    const headers = { 'idempotency-key': '"deploy-42"' }
    const post = (kind: object) => send('POST', `${GROUP}/rebalances`, { kind }, headers)
    const first = await post({ type: 'drain', member: 'orders-0' })
    const second = await post({ type: 'drain', member: 'orders-0' })
    assert.deepEqual([first.status, first.body.id], [202, 'deploy-42'])
    assert.deepEqual(second.body, first.body)
    assert.equal(group.rebalances.length, 1)
    const other = await post({ type: 'drain', member: 'orders-1' })
    assert.deepEqual([other.status, other.body.code], [409, 'conflict'])
    assert.match(other.body.detail, /deploy-42/)
  })

  test('short forms, move and drain, are rebalances of their kind', async (t) => {
    const { group, send } = await serveGroup(t)
    const move = await send('POST', `${GROUP}/partitions/3/move`, { to: 'orders-0', ...ASKED })
    const drain = await send('POST', `${GROUP}/members/orders-1/drain`)
    assert.deepEqual([move.status, drain.status], [202, 202])
    assert.deepEqual(
      group.rebalances.map(({ kind, by, reason }) => [kind, by, reason]),
      [
        [{ type: 'move', partition: 3, to: 'orders-0' }, 'ann', 'deploy'],
        [{ type: 'drain', member: 'orders-1' }, 'http 127.0.0.1', ''],
      ],
    )
    assert.equal(move.headers['location'], `${GROUP}/rebalances/rebalance-0`)
  })

  test('a dry run, each kind, answers the diff and changes nothing', async (t) => {
    const { group, send } = await serveGroup(t)
    group.plan = [{ partition: 2, from: memberName('orders-0'), to: memberName('orders-1') }]
    const dry = async (kind?: object) => {
      const body = kind === undefined ? { dryRun: true } : { dryRun: true, kind }
      const reply = await send('POST', `${GROUP}/rebalances`, body)
      assert.equal(reply.status, 200)
      assert.deepEqual([reply.body.dryRun, reply.body.truncated], [true, false])
      assert.equal(reply.headers['etag'], '"1764440000.100"')
      return [reply.body.count, reply.body.moves]
    }
    assert.deepEqual(await dry(), [1, group.plan])
    const moved = { partition: 3, from: 'orders-1', to: 'orders-0' }
    assert.deepEqual(await dry({ type: 'move', partition: 3, to: 'orders-0' }), [1, [moved]])
    assert.deepEqual(await dry({ type: 'move', partition: 3, to: 'orders-1' }), [0, []])
    const [count, moves] = await dry({ type: 'drain', member: 'orders-1' })
    assert.deepEqual(
      [count, moves.map((each: { partition: number }) => each.partition)],
      [4, [1, 3, 5, 7]],
    )
    assert.deepEqual([group.calls, group.rebalances], [[], []])
  })

  test('a dry run of a very large plan, shows a bounded part and counts all', async (t) => {
    const { group, send } = await serveGroup(t)
    group.plan = Array.from({ length: 10_001 }, (_, partition) => ({
      ...{ partition, from: null, to: memberName('orders-0') },
    }))
    const { body } = await send('POST', `${GROUP}/rebalances`, { dryRun: true })
    assert.deepEqual([body.count, body.truncated, body.moves.length], [10_001, true, 10_000])
  })

  test('a rebalance, cancelled by either way, answers 202 with its state', async (t) => {
    const { group, send } = await serveGroup(t)
    await send('POST', `${GROUP}/rebalances`)
    const url = `${GROUP}/rebalances/rebalance-0`
    for (const reply of [await send('POST', `${url}/cancel`), await send('DELETE', url)]) {
      assert.deepEqual([reply.status, reply.body.state], [202, 'cancelling'])
      assert.equal(reply.headers['location'], url)
    }
    assert.equal(group.calls.filter(({ name }) => name === 'cancelRebalance').length, 2)
  })
})
