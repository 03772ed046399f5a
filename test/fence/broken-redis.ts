/**
 * The Redis fence, right (null) or broken in one way, on a real server:
 *
 *   check-outside-transaction   the script checks alone, the write is a command of its own
 *   equal-generation-accepted   both scripts without their comparison of the session
 *   lost-on-restart             a server that logs nothing, so that a crash forgets the fence
 *   no-seal                     seal does nothing, and the effect's script raises the mark by itself
 */
import type { Redis } from 'ioredis'
import { groupName } from '../../src/core/ids.ts'
import { sortableToken, type Token } from '../../src/core/token.ts'
import type { Fence } from '../../src/fence/fence.ts'
import { createRedisFence, redisKey } from '../../src/fence/redis.ts'
import { readReply } from '../../src/fence/redis-replies.ts'
import { COMMANDS_SCRIPT, SEAL_SCRIPT } from '../../src/fence/redis-scripts.ts'
import { type EffectStep, type FenceResource, ownerInProcess } from '../../src/testing/index.ts'
import { connectRedis, startRedis } from '../support/redis.ts'
import type { CleanUp } from '../support/servers.ts'
import { checkedOutside, mutated } from './checked-outside.ts'
import { entryOf, readEntry } from './list-entries.ts'
import type { Break } from './memory-resource.ts'

const GROUP = groupName('conformance')
type Append = { readonly entry: string; readonly step: EffectStep }

export async function brokenRedis(cleanUp: CleanUp, broken: Break | null): Promise<FenceResource> {
  const extraArgs = broken === 'lost-on-restart' ? ['--appendonly', 'no'] : []
  const server = await startRedis(cleanUp, { extraArgs })
  const redis = connectRedis(cleanUp, server)
  return {
    async owner() {
      const own = connectRedis(cleanUp, server)
      return ownerInProcess({
        fence: fenceOf(own, broken),
        effectOf: (token, number, step): Append => ({ entry: entryOf(token, number), step }),
        close: async () => own.disconnect(),
      })
    },
    async applied(partition) {
      const entries = await redis.lrange(redisKey({ group: GROUP, partition }, 'effects'), 0, -1)
      return entries.map(readEntry)
    },
    stops: broken === 'check-outside-transaction' ? ['before', 'checked'] : ['before'],
    async restart() {
      await server.kill()
      await server.restart()
    },
  }
}

function fenceOf(redis: Redis, broken: Break | null): Fence<Append, unknown> {
  const right = createRedisFence(redis, { group: GROUP })
  switch (broken) {
    case null:
    case 'lost-on-restart':
      return {
        seal: right.seal,
        guard: (token, { entry }) => {
          return right.guard(token, { commands: [['rpush', listOf(token), entry]] })
        },
      }
    case 'check-outside-transaction':
      return checkedOutside(right, { commands: [] }, async (token, { entry, step }: Append) => {
        await step('checked')
        await redis.rpush(listOf(token), entry)
      })
    case 'equal-generation-accepted': {
      const other = 'string.sub(held or "", 1, 25) ~= string.sub(ARGV[1], 1, 25)'
      const anySession = (source: string) => mutated(source, 'held ~= ARGV[1]', other)
      const seal = anySession(SEAL_SCRIPT.source)
      return scripted(redis, { seal, guard: anySession(COMMANDS_SCRIPT.source) })
    }
    case 'no-seal': {
      const write = "redis.call('RPUSH', KEYS[2], ARGV[5])"
      const done = 'return {}'
      return scripted(redis, {
        seal: null,
        guard: mutated(SEAL_SCRIPT.source, done, `${write} ${done}`),
      })
    }
    default:
      return broken satisfies never
  }
}

/** A fence of two scripts that are sent as they are. */
function scripted(
  redis: Redis,
  scripts: { readonly seal: string | null; readonly guard: string },
): Fence<Append, unknown> {
  const evaluate = async (source: string, token: Token, keys: string[], words: string[]) => {
    const fenceKey = redisKey(token, 'fence')
    const all = [fenceKey, ...keys, sortableToken(token), ...words]
    return readReply(await redis.eval(source, keys.length + 1, ...all), fenceKey)
  }
  return {
    async seal(token) {
      if (scripts.seal === null) return { ok: true }
      const reply = await evaluate(scripts.seal, token, [], [])
      if (reply.type === 'ok') return { ok: true }
      if (reply.highest === null) throw new Error('a seal met no fence')
      return { ok: false, reason: 'stale', highest: reply.highest }
    },
    async guard(token, { entry }) {
      const list = listOf(token)
      const reply = await evaluate(scripts.guard, token, [list], ['3', 'rpush', list, entry])
      if (reply.type === 'ok') return { ok: true, value: reply.replies }
      return { ok: false, reason: reply.type, highest: reply.highest }
    },
  }
}

function listOf(token: Token): string {
  return redisKey(token, 'effects')
}
