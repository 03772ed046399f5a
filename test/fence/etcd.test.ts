import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { groupName } from '../../src/core/ids.ts'
import type { Token } from '../../src/core/token.ts'
import { createEtcdFence, type EtcdEffect } from '../../src/fence/etcd.ts'
import { connectEtcd } from '../support/etcd-client.ts'
import { startEtcd } from '../support/servers.ts'
import { MALFORMED_TOKENS, SESSION_B, sealedOf, tokenOf } from './tokens.ts'

const server = await startEtcd({ after })
const etcd = connectEtcd({ after }, server.endpoint)
const fence = createEtcdFence(etcd, { group: 'orders' })

let partitions = 0
/** A partition that no other test uses. */
function freshToken(generation: number, partition = ++partitions): Token {
  return tokenOf(generation, { partition })
}

function put(token: Token, value: string): EtcdEffect {
  return { success: [{ request_put: { key: keyOf(token), value: Buffer.from(value) } }] }
}

function keyOf(token: Token): Buffer {
  return Buffer.from(`/data/${token.partition}`)
}

function stored(token: Token): Promise<string | null> {
  return etcd.get(`/data/${token.partition}`).string()
}

test('the fence key holds just the sortable token', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  const key = `/tenure-fence/orders/${String(token.partition).padStart(6, '0')}`
  assert.equal(await etcd.get(key).string(), '0000692b37c0.000000000004.00000000000000aa')
})

test('an effect before any seal is refused as unsealed and writes nothing', async () => {
  const token = freshToken(4)
  assert.deepEqual(await fence.guard(token, put(token, 'x')), {
    ok: false,
    reason: 'unsealed',
    highest: null,
  })
  assert.equal(await stored(token), null)
})

test('a sealed token writes, and learns whether its own compare held', async () => {
  const token = freshToken(4)
  assert.deepEqual(await fence.seal(token), { ok: true })
  assert.deepEqual(await fence.seal(token), { ok: true }, 'the same seal again changes nothing')
  const first: EtcdEffect = {
    ...put(token, 'one'),
    compare: [{ key: keyOf(token), target: 1, result: 0, create_revision: 0 }],
    failure: [{ request_range: { key: keyOf(token) } }],
  }
  const done = await fence.guard(token, first)
  assert.equal(done.ok && done.value.succeeded, true)
  const again = await fence.guard(token, first)
  assert.ok(again.ok)
  assert.equal(again.value.succeeded, false)
  assert.equal(String(again.value.responses[0]?.response_range.kvs[0]?.value), 'one')
})

test('an effect without a compare of its own, writes all it says and answers to each', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  const read = { request_range: { key: keyOf(token) } }
  const done = await fence.guard(token, { success: [...put(token, 'one').success, read] })
  assert.ok(done.ok)
  assert.equal(done.value.succeeded, true)
  assert.equal(done.value.responses.length, 2)
  assert.equal(String(done.value.responses[1]?.response_range.kvs[0]?.value), 'one')
})

test('a late write of the old owner, after the seal and before any write, is refused', async () => {
  const old = freshToken(4)
  const next = { ...old, generation: 5, session: SESSION_B }
  await fence.seal(old)
  await fence.seal(next)
  const refusal = { ok: false, reason: 'stale', highest: sealedOf(next) }
  assert.deepEqual(await fence.guard(old, put(old, 'late')), refusal)
  assert.deepEqual(await fence.seal(old), refusal)
  assert.equal(await stored(old), null)
})

test('an equal generation of another session is refused, whichever session sorts higher', async () => {
  for (const [mine, other] of [
    [tokenOf(1).session, SESSION_B],
    [SESSION_B, tokenOf(1).session],
  ] as const) {
    const first = { ...freshToken(4), session: mine }
    const twin = { ...first, session: other }
    await fence.seal(first)
    const refusal = { ok: false, reason: 'stale', highest: sealedOf(first) }
    assert.deepEqual(await fence.seal(twin), refusal)
    assert.deepEqual(await fence.guard(twin, put(twin, 'x')), refusal)
    assert.equal((await fence.guard(first, put(first, 'mine'))).ok, true)
  }
})

test('a token above the sealed one is told to seal; positions are ordered as numbers', async () => {
  const low = { ...freshToken(9), incarnation: 255 }
  const high = { ...low, generation: 10 }
  const highest = { ...low, incarnation: 256, generation: 1 }
  await fence.seal(low)
  assert.deepEqual(await fence.guard(high, put(high, 'x')), {
    ok: false,
    reason: 'unsealed',
    highest: sealedOf(low),
  })
  assert.deepEqual(await fence.seal(high), { ok: true })
  assert.deepEqual(await fence.seal(highest), { ok: true })
  assert.equal((await fence.seal(high)).ok, false)
})

test('an effect that touches the fence key is refused, in ranges and nested too', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  const key = Buffer.from(`/tenure-fence/orders/${String(token.partition).padStart(6, '0')}`)
  const all = Buffer.from([0])
  const operations = [
    { request_put: { key, value: Buffer.from('x') } },
    { request_delete_range: { key } },
    { request_delete_range: { key: Buffer.from('/t'), range_end: Buffer.from('/u') } },
    { request_delete_range: { key: all, range_end: all } },
    { request_txn: { compare: [], success: [], failure: [{ request_delete_range: { key } }] } },
  ]
  for (const operation of operations) {
    const success = [...put(token, 'must not land').success, operation]
    await assert.rejects(fence.guard(token, { success }), { code: 'invalid-argument' })
  }
  assert.equal(await stored(token), null)
})

test('an effect of another shape is one clear error and no write', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  const { success } = put(token, 'must not land')
  const compare = { key: keyOf(token), target: 1, result: 0, create_revision: 7 }
  for (const effect of [undefined, null, {}, { success: success[0] }, { success, compare }]) {
    const refused = { code: 'invalid-argument', message: /give \{ success: \[/ }
    await assert.rejects(fence.guard(token, effect as unknown as EtcdEffect), refused)
  }
  assert.equal(await stored(token), null)
})

test('a malformed token, and one of another group, is one clear error and no write', async () => {
  for (const bad of MALFORMED_TOKENS) {
    await assert.rejects(fence.seal(bad as Token), { code: 'invalid-argument' })
    const effect = put(tokenOf(1, { partition: 777 }), 'bad')
    await assert.rejects(fence.guard(bad as Token, effect), { code: 'invalid-argument' })
  }
  const other = { ...tokenOf(1), group: groupName('invoices') }
  await assert.rejects(fence.seal(other), /group invoices at a fence of group orders/)
  assert.deepEqual(await etcd.getAll().prefix('/tenure-fence/invoices').keys(), [])
  assert.equal(await etcd.get('/data/777').string(), null)
})

test('a fence key that holds something else is an error that names it, and no write', async () => {
  const token = freshToken(4)
  await etcd.put(`/tenure-fence/orders/${String(token.partition).padStart(6, '0')}`).value('what')
  await assert.rejects(fence.seal(token), { code: 'record-malformed', message: /tenure-fence/ })
  await assert.rejects(fence.guard(token, put(token, 'x')), { code: 'record-malformed' })
  assert.equal(await stored(token), null)
})

test('what etcd refuses is an error with its words', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  const twice = [...put(token, 'a').success, ...put(token, 'b').success]
  await assert.rejects(fence.guard(token, { success: twice }), {
    code: 'store-refused',
    message: /duplicate key/,
  })
  // A lease that ran out and a revision that was compacted, too: nothing was written, and it is known.
  const lease = { request_put: { key: keyOf(token), value: Buffer.from('x'), lease: '4242' } }
  await assert.rejects(fence.guard(token, { success: [lease] }), { code: 'store-refused' })
  const { header } = await etcd.kv.range({ key: keyOf(token) })
  await etcd.kv.compact({ revision: header.revision, physical: true })
  const compacted = { request_range: { key: keyOf(token), revision: '1' } }
  await assert.rejects(fence.guard(token, { success: [compacted] }), { code: 'store-refused' })
  assert.equal(await stored(token), null)
})

test('an etcd that is too old is refused and nothing is sent', async () => {
  const sent: unknown[] = []
  const old = createEtcdFence(
    {
      maintenance: {
        status: async () => ({ ...(await etcd.maintenance.status()), version: '3.2.32' }),
      },
      kv: {
        txn(request) {
          sent.push(request)
          return etcd.kv.txn(request)
        },
      },
    },
    { group: 'orders' },
  )
  await assert.rejects(old.seal(tokenOf(1)), {
    code: 'fence-not-ready',
    message: /3\.2\.32 is too old for a fence: 3\.3 or later/,
  })
  assert.deepEqual(sent, [])
})

test('the highest token survives a restart; a server that is gone leaves the outcome unknown', async (t) => {
  const own = await startEtcd(t, { unsafeNoFsync: false })
  const before = createEtcdFence(connectEtcd(t, own.endpoint), { group: 'orders' })
  const token = tokenOf(5)
  await before.seal(token)
  await own.kill()
  await assert.rejects(before.seal(tokenOf(6)), {
    code: 'store-unreachable',
    details: { outcome: 'unknown' },
  })
  await own.restart()
  const later = createEtcdFence(connectEtcd(t, own.endpoint), { group: 'orders' })
  assert.deepEqual(await later.seal(tokenOf(4)), {
    ok: false,
    reason: 'stale',
    highest: sealedOf(token),
  })
})
