import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { groupName } from '../../src/core/ids.ts'
import type { Token } from '../../src/core/token.ts'
import { createRedisFence, type RedisEffect, redisKey } from '../../src/fence/redis.ts'
import { eventually } from '../support/eventually.ts'
import { connectRedis, connectRedisCluster, startRedis } from '../support/redis.ts'
import { MALFORMED_TOKENS, SESSION_B, sealedOf, tokenOf } from './tokens.ts'

const server = await startRedis({ after })
const redis = connectRedis({ after }, server)
const fence = createRedisFence(redis, { group: 'orders' })

let partitions = 0
/** A partition that no other test uses. */
function freshToken(generation: number, partition = ++partitions): Token {
  return tokenOf(generation, { partition })
}

function append(token: Token, entry: string) {
  return { commands: [['rpush', redisKey(token, 'list'), entry]] } as const
}

function listOf(token: Token): Promise<string[]> {
  return redis.lrange(redisKey(token, 'list'), 0, -1)
}

test('an effect before any seal is refused as unsealed and writes nothing', async () => {
  const token = freshToken(4)
  assert.deepEqual(await fence.guard(token, append(token, 'x')), {
    ok: false,
    reason: 'unsealed',
    highest: null,
  })
  assert.deepEqual(await listOf(token), [])
})

test('a sealed token writes; its replies come back one per command', async () => {
  const token = freshToken(4)
  assert.deepEqual(await fence.seal(token), { ok: true })
  assert.deepEqual(await fence.seal(token), { ok: true }, 'the same seal again changes nothing')
  const key = redisKey(token, 'count')
  const outcome = await fence.guard(token, {
    commands: [
      ['incrby', key, 5],
      ['set', redisKey(token, 'name'), 'apples'],
      ['get', redisKey(token, 'missing')],
    ],
  })
  assert.deepEqual(outcome, { ok: true, value: [5, 'OK', null] })
  for (const [command, reply] of [
    [['incrby', key, 2], 7],
    [['get', redisKey(token, 'missing')], null],
  ] as const) {
    assert.deepEqual(await fence.guard(token, { commands: [command] }), {
      ok: true,
      value: [reply],
    })
  }
  assert.deepEqual(await fence.guard(token, { commands: [] }), { ok: true, value: [] })
})

test('a late write of the old owner, after the seal and before any write, is refused', async () => {
  const old = freshToken(4)
  const next = { ...old, generation: 5, session: SESSION_B }
  await fence.seal(old)
  await fence.seal(next)
  const refusal = { ok: false, reason: 'stale', highest: sealedOf(next) }
  assert.deepEqual(await fence.guard(old, append(old, 'late')), refusal)
  assert.deepEqual(await fence.seal(old), refusal)
  const [command] = append(old, 'late').commands
  assert.deepEqual(await fence.guard(old, { commands: [command, command] }), refusal)
  assert.deepEqual(await listOf(old), [])
})

test('an equal generation of another session is refused, to seal and to write', async () => {
  const first = freshToken(4)
  const twin = { ...first, session: SESSION_B }
  await fence.seal(first)
  const refusal = { ok: false, reason: 'stale', highest: sealedOf(first) }
  assert.deepEqual(await fence.seal(twin), refusal)
  assert.deepEqual(await fence.guard(twin, append(twin, 'x')), refusal)
  assert.equal((await fence.guard(first, append(first, 'mine'))).ok, true)
})

test('a token above the sealed one is told to seal; a higher incarnation outranks generations', async () => {
  const low = freshToken(9)
  const high = { ...low, incarnation: low.incarnation + 1, generation: 1 }
  await fence.seal(low)
  assert.deepEqual(await fence.guard(high, append(high, 'x')), {
    ok: false,
    reason: 'unsealed',
    highest: sealedOf(low),
  })
  assert.deepEqual(await fence.seal(high), { ok: true })
  assert.equal((await fence.guard(low, append(low, 'x'))).ok, false)
})

test('a script effect sees its own keys and arguments, and runs only under the sealed token', async () => {
  const token = freshToken(4)
  const effect = {
    script: `redis.call('SET', KEYS[1], ARGV[1]) -- a comment at the end
      if ARGV[2] == 'nothing' then return nil end
      return {KEYS[1], #ARGV}`,
    keys: [redisKey(token, 'value')],
    args: ['v', 'w'],
  }
  assert.equal((await fence.guard(token, effect)).ok, false)
  assert.equal(await redis.get(redisKey(token, 'value')), null)
  await fence.seal(token)
  assert.deepEqual(await fence.guard(token, effect), { ok: true, value: [effect.keys[0], 2] })
  assert.deepEqual(await fence.guard(token, { ...effect, args: ['v', 'nothing'] }), {
    ok: true,
    value: null,
  })
})

test('a server that forgot the scripts is given them again', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  await redis.script('FLUSH')
  assert.equal((await fence.guard(token, append(token, 'x'))).ok, true)
  assert.deepEqual(await listOf(token), ['x'])
})

test('effects beyond the partition, unknown or unfit commands are refused before any write', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  const good = append(token, 'must not land').commands[0]
  const cases: readonly [RegExp, readonly (readonly [string, ...string[]])[]][] = [
    [/redisKey\(token/, [good, ['set', 'elsewhere', '1']]],
    [/redisKey\(token/, [good, ['set', redisKey({ ...token, partition: 99 }, 'x'), '1']]],
    [/redisKey\(token/, [good, ['rename', redisKey(token, 'list'), 'elsewhere']]],
    [/redisKey\(token/, [good, ['sort', redisKey(token, 'list'), 'STORE', 'elsewhere']]],
    [/is the fence itself/, [good, ['del', redisKey(token, 'list'), redisKey(token, 'fence')]]],
    [/has no command/, [good, ['nonsense', 'x']]],
    [/names no key/, [good, ['flushall']]],
    [/wrong number/, [good, ['set', redisKey(token, 'x')]]],
    [/cannot be part/, [good, ['subscribe', redisKey(token, 'x')]]],
  ]
  for (const [message, commands] of cases) {
    const refused = { code: 'invalid-argument', message }
    await assert.rejects(fence.guard(token, { commands }), refused)
  }
  assert.deepEqual(await listOf(token), [])
})

test('an effect of another shape is one clear error and no write', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  const list = redisKey(token, 'list')
  const good = append(token, 'must not land').commands[0]
  const text = 'return redis.call("rpush", KEYS[1], ARGV[1])'
  const cases: readonly [RegExp, unknown][] = [
    [/give \{ commands/, undefined],
    [/give \{ commands/, {}],
    [/give \{ commands/, { commands: 'rpush' }],
    [/give \{ commands/, { keys: [list], args: ['x'] }],
    [/give \{ commands/, { script: text, keys: list, args: ['x'] }],
    [/give \{ commands/, { script: text, keys: [list], args: 'x' }],
    [/a command is a list .* not of type string/, { commands: [good, 'rpush'] }],
    [/has no name/, { commands: [good, []] }],
    [/name is a text, not of type number/, { commands: [good, [7, list]] }],
    // The client would flatten this list, and the script would read the rest as it was counted before.
    [/a word is .* not a list/, { commands: [['rpush', list, ['a', 'b']], good] }],
    [/a word is .* not undefined/, { commands: [good, ['rpush', list, undefined]] }],
    [/a word is .* not of type object/, { commands: [good, ['rpush', list, { a: 1 }]] }],
    [/a key of a script is a text, not null/, { script: text, keys: [null], args: ['x'] }],
    [/a word is .* not null/, { script: text, keys: [list], args: [null] }],
  ]
  for (const [message, effect] of cases) {
    const refused = { code: 'invalid-argument', message }
    await assert.rejects(fence.guard(token, effect as RedisEffect), refused)
  }
  assert.deepEqual(await listOf(token), [])
})

test('a malformed token, and one of another group, is one clear error and no write', async () => {
  for (const bad of MALFORMED_TOKENS) {
    await assert.rejects(fence.seal(bad as Token), { code: 'invalid-argument' })
    const effect = { commands: [['set', redisKey(tokenOf(1), 'bad'), '1']] } as const
    await assert.rejects(fence.guard(bad as Token, effect), { code: 'invalid-argument' })
  }
  const other = { ...tokenOf(1), group: groupName('invoices') }
  await assert.rejects(fence.seal(other), /group invoices at a fence of group orders/)
  assert.deepEqual(await redis.keys('*invoices*'), [])
  assert.equal(await redis.get(redisKey(tokenOf(1), 'bad')), null)
})

test('the fence key holds just the sortable token', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  const sealed = await redis.get(redisKey(token, 'fence'))
  assert.equal(sealed, '0000692b37c0.000000000004.00000000000000aa')
})

test('positions are ordered as numbers, whatever the session', async () => {
  // Of each pair the later is above, though as decimal texts, or by the session's letters, some are not.
  const rising = [9, 10, 15, 16, 255, 256, 2 ** 30].map((generation, place) => ({
    ...freshToken(generation, 9000),
    session: place % 2 === 0 ? SESSION_B : tokenOf(1).session,
  }))
  let last: Token | null = null
  for (const token of rising) {
    assert.deepEqual(await fence.seal(token), { ok: true })
    const refusal = { ok: false, reason: 'stale', highest: sealedOf(token) }
    if (last !== null) assert.deepEqual(await fence.seal(last), refusal)
    last = token
  }
})

test('a fence key that holds something else is an error that names it', async () => {
  const right = '0000692b37c0.000000000003.00000000000000aa'
  const texts = ['', '7', right.slice(1), `${right}0`, right.toUpperCase(), right.replace('.', '0')]
  const puts = [
    (key: string) => redis.hset(key, 'v', '2', 'incarnation', '1'),
    ...texts.map((text) => (key: string) => redis.set(key, text)),
  ]
  for (const put of puts) {
    const token = freshToken(4)
    await put(redisKey(token, 'fence'))
    await assert.rejects(fence.seal(token), { code: 'record-malformed' })
    await assert.rejects(fence.guard(token, append(token, 'x')), { code: 'record-malformed' })
    assert.deepEqual(await listOf(token), [])
  }
})

test('an effect that fails is an error with the server’s words', async () => {
  const token = freshToken(4)
  await fence.seal(token)
  await redis.set(redisKey(token, 'list'), 'no list')
  await assert.rejects(fence.guard(token, append(token, 'x')), {
    code: 'store-refused',
    message: /WRONGTYPE/,
  })
})

test('the highest token survives a restart of the server', async (t) => {
  const own = await startRedis(t)
  const before = createRedisFence(connectRedis(t, own), { group: 'orders' })
  const token = tokenOf(5)
  await before.seal(token)
  await own.kill()
  await own.restart()
  const later = createRedisFence(connectRedis(t, own), { group: 'orders' })
  assert.deepEqual(await later.seal(tokenOf(4)), {
    ok: false,
    reason: 'stale',
    highest: sealedOf(token),
  })
})

test('a client that may send twice or hides its keys is refused with the option to change', (t) => {
  const resending = connectRedis(t, server, { autoResendUnfulfilledCommands: true })
  assert.throws(() => createRedisFence(resending, { group: 'orders' }), {
    code: 'invalid-config',
    message: /autoResendUnfulfilledCommands: false/,
  })
  createRedisFence(resending, { group: 'orders', resends: 'accept' })
  const prefixed = connectRedis(t, server, { keyPrefix: 'app:' })
  assert.throws(() => createRedisFence(prefixed, { group: 'orders' }), {
    code: 'invalid-config',
    message: /keyPrefix/,
  })
})

test('a server that may evict the fence, or is too old, is refused and nothing is written', async (t) => {
  const evicting = await startRedis(t, { extraArgs: ['--maxmemory-policy', 'allkeys-lru'] })
  const client = connectRedis(t, evicting)
  const token = tokenOf(1)
  const refused = { code: 'fence-not-ready', message: /maxmemory-policy/ }
  await assert.rejects(createRedisFence(client, { group: 'orders' }).seal(token), refused)
  assert.deepEqual(await client.keys('*'), [])

  const old = connectRedis(t, server)
  old.info = (async () => 'redis_version:3.2.12\r\n') as typeof old.info
  await assert.rejects(createRedisFence(old, { group: 'orders' }).seal(token), {
    code: 'fence-not-ready',
    message: /3\.2\.12 is too old/,
  })
})

test('in a cluster, fence and effect share one slot and work alike', async (t) => {
  const node = await startRedis(t, {
    extraArgs: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
  })
  const direct = connectRedis(t, node)
  await direct.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  await eventually(
    async () => /cluster_state:ok/.test(String(await direct.call('CLUSTER', 'INFO'))),
    {
      timeoutMs: 20_000,
      what: 'the cluster to serve',
    },
  )
  assert.throws(
    () => createRedisFence(connectRedisCluster(t, node, {}), { group: 'orders' }),
    /retryDelayOnFailover: 0/,
  )
  const cluster = connectRedisCluster(t, node, { retryDelayOnFailover: 0 })
  const clustered = createRedisFence(cluster, { group: 'orders' })
  for (const partition of [0, 1, 2, 500]) {
    const token = tokenOf(4, { partition })
    await clustered.seal(token)
    const effect: RedisEffect = {
      commands: [
        ['set', redisKey(token, 'a'), '1'],
        ['incr', redisKey(token, 'b')],
      ],
    }
    assert.deepEqual(await clustered.guard(token, effect), {
      ok: true,
      value: ['OK', 1],
    })
    assert.equal((await clustered.seal(tokenOf(3, { partition }))).ok, false)
  }
})

test('a server that is gone is an error whose outcome is unknown', async (t) => {
  const own = await startRedis(t)
  const client = connectRedis(t, own, { maxRetriesPerRequest: 0 })
  const short = createRedisFence(client, { group: 'orders' })
  await short.seal(tokenOf(1))
  await own.kill()
  await assert.rejects(short.seal(tokenOf(2)), {
    code: 'store-unreachable',
    details: { outcome: 'unknown' },
  })
})
