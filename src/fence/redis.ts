/**
 * The fence of data in Redis. Fence and effect are one Lua script over keys of one hash tag, so check and
 * write are one step on a single server and in a cluster alike.
 *
 *   {tenure:<group>:<partition>}:fence    the sortable token that is sealed
 *   {tenure:<group>:<partition>}:<name>   the user's keys, see {@link redisKey}
 *
 * What Redis can lose, and this fence with it: replication is asynchronous, so a failover may forget the
 * last writes, a seal among them. Then an owner that was refused already may be accepted until the next
 * seal, and effects that were acknowledged are gone. `appendfsync everysec`, the usual setting, loses up to
 * two seconds of writes when the machine fails; without `appendonly` a restart goes back to the last
 * snapshot. Fence and effects are lost alike, up to the same write, yet what a consumer stored elsewhere is
 * not. Where that matters: `appendonly yes`, `appendfsync always`, no automatic failover (or accept its
 * loss; `min-replicas-to-write` makes it rarer, never impossible), and no `maxmemory-policy allkeys-*`,
 * which is refused here. Or keep the data in PostgreSQL or etcd.
 *
 * Not promised: that an effect whose own command fails half-way leaves nothing behind. Redis undoes no
 * script. Unknown commands, wrong lengths and foreign keys are refused before anything is written; a
 * command on a key of the wrong type is not. Neither that a failed call did nothing: when the connection
 * breaks, the outcome is unknown (`details.outcome`), so that the caller decides whether to repeat it.
 */
import type { Cluster, Redis } from 'ioredis'
import { groupName, type PartitionId } from '../core/ids.ts'
import { createTenureError, isTenureError, type TenureError } from '../core/tenure-error.ts'
import { sortableToken, type Token } from '../core/token.ts'
import { checkTokenOf } from '../core/token-text.ts'
import { badEffect, type EffectOutcome, type Fence, type SealOutcome } from './fence.ts'
import { createCommandChecker } from './redis-commands.ts'
import { type EffectWords, onlyCommand, type RedisEffect, wordsOf } from './redis-effect.ts'
import { readReply, type ScriptReply } from './redis-replies.ts'
import {
  COMMAND_SCRIPT,
  COMMANDS_SCRIPT,
  guardedScript,
  type RedisScript,
  SEAL_SCRIPT,
} from './redis-scripts.ts'
import { checkClient, checkServer, type Resends } from './redis-server-check.ts'

export type { RedisCommand } from './redis-commands.ts'
export type { RedisEffect } from './redis-effect.ts'

export type RedisFenceOptions = {
  /** Tokens of another group are refused. */
  readonly group: string
  /**
   * [`refuse`]: a client that would send an unanswered effect a second time is refused. `accept`: every
   * effect may run twice.
   */
  readonly resends?: Resends
}

type Connection = {
  readonly client: Redis | Cluster
  readonly ready: () => Promise<void>
}

/** What a token comes to here: put together once, for an owner sends the same one with each effect. */
type NamedToken = {
  readonly partition: PartitionId
  readonly slot: string
  readonly fence: string
  readonly sortable: string
}

/** Name of a key that effects under the token may write: `{tenure:orders:17}:cart`. */
export function redisKey(token: Pick<Token, 'group' | 'partition'>, name: string): string {
  return `${slotOf(token)}:${name}`
}

/**
 * @throws TenureError `invalid-config`: a client that would break a promise, with the option to change;
 *   its functions throw `invalid-argument` for a bad token or effect, `fence-not-ready` for a server that
 *   cannot hold a fence, `store-refused` and `store-unreachable` for what Redis answers or does not.
 * @example
 * const fence = createRedisFence(redis, { group: 'orders' })
 * await fence.seal(p.token)
 * await fence.guard(p.token, { commands: [['hincrby', redisKey(p.token, 'stock'), 'apples', -1]] })
 */
export function createRedisFence(
  client: Redis | Cluster,
  options: RedisFenceOptions,
): Fence<RedisEffect, unknown> {
  const group = groupName(options.group)
  checkClient(client, options.resends ?? 'refuse')
  const connection = { client, ready: onceItHolds(() => checkServer(client)) }
  const checker = createCommandChecker(client)
  const scripts = new Map<string, RedisScript>()
  const named = new WeakMap<Token, NamedToken>()
  const nameKnown = (value: Token): NamedToken => {
    const known = named.get(value)
    if (known !== undefined) return known
    const token = nameToken(checkTokenOf(group, value))
    named.set(value, token)
    return token
  }
  const run = async (script: RedisScript, token: NamedToken, words: EffectWords) => {
    const keys = [token.fence, ...words.keys]
    const reply = await evaluate(connection, script, keys, [token.sortable, ...words.args])
    return readReply(reply, token.fence)
  }

  return {
    async seal(value) {
      return sealOutcome(await run(SEAL_SCRIPT, nameToken(checkTokenOf(group, value)), NO_WORDS))
    },
    async guard(value, effect) {
      const token = nameKnown(value)
      const asked = wordsOf(checker, effect)
      const words = asked instanceof Promise ? await translated(asked) : asked
      refuseForeignKeys(token, words.keys)
      return effectOutcome(effect, await run(scriptOf(effect, scripts), token, words))
    },
  }
}

const NO_WORDS: EffectWords = { keys: [], args: [] }

/** Different scripts that one fence remembers; beyond it they are hashed anew each time. */
const SCRIPTS_MAX = 1000

function scriptOf(effect: RedisEffect, known: Map<string, RedisScript>): RedisScript {
  if ('commands' in effect) {
    return onlyCommand(effect.commands) === null ? COMMANDS_SCRIPT : COMMAND_SCRIPT
  }
  if (effect.script.startsWith('#!')) {
    throw badEffect('the script begins with "#!": give its body only')
  }
  const script = known.get(effect.script) ?? guardedScript(effect.script)
  if (known.size < SCRIPTS_MAX) known.set(effect.script, script)
  return script
}

/** By its digest, and with its source where the server does not know it (which then ran nothing). */
async function evaluate(
  { client, ready }: Connection,
  script: RedisScript,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<unknown> {
  try {
    await ready()
    return await client.evalsha(script.sha, keys.length, ...keys, ...args)
  } catch (error) {
    const isUnknown = isReplyError(error) && error.message.startsWith('NOSCRIPT')
    if (!isUnknown) throw asTenureError(error)
    return translated(client.eval(script.source, keys.length, ...keys, ...args))
  }
}

function sealOutcome(reply: ScriptReply): SealOutcome {
  if (reply.type === 'ok') return { ok: true }
  if (reply.highest === null) throw createTenureError('invariant-broken', 'a seal met no fence')
  return { ok: false, reason: 'stale', highest: reply.highest }
}

function effectOutcome(effect: RedisEffect, reply: ScriptReply): EffectOutcome<unknown> {
  if (reply.type !== 'ok') return { ok: false, reason: reply.type, highest: reply.highest }
  return { ok: true, value: 'commands' in effect ? reply.replies : reply.replies[0] }
}

/** A cluster runs a script only on keys of one slot, and other keys are not this token's to write. */
function refuseForeignKeys({ partition, slot, fence }: NamedToken, keys: readonly string[]): void {
  for (const key of keys) {
    if (key === fence) throw badEffect(`${key} is the fence itself: effects leave it alone`)
    if (!key.startsWith(slot)) {
      throw badEffect(
        `key "${key}" is not in the slot of partition ${partition}: name it redisKey(token, "${key}")`,
      )
    }
  }
}

function nameToken(token: Token): NamedToken {
  return {
    partition: token.partition,
    slot: slotOf(token),
    fence: redisKey(token, 'fence'),
    sortable: sortableToken(token),
  }
}

function slotOf({ group, partition }: Pick<Token, 'group' | 'partition'>): string {
  return `{tenure:${group}:${partition}}`
}

/** Asks until it held once; a failure is asked again at the next use. */
function onceItHolds(check: () => Promise<void>): () => Promise<void> {
  let holding: Promise<void> | null = null
  return () => {
    holding ??= check().catch((error: unknown) => {
      holding = null
      throw error
    })
    return holding
  }
}

async function translated<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    throw asTenureError(error)
  }
}

function asTenureError(error: unknown): TenureError {
  return isTenureError(error) ? error : errorOf(error)
}

function errorOf(error: unknown): TenureError {
  if (!isReplyError(error)) {
    return createTenureError('store-unreachable', `Redis did not answer: ${String(error)}`, {
      cause: error,
      details: { outcome: 'unknown' },
    })
  }
  const remedy = error.message.startsWith('READONLY') ? ': connect to the primary' : ''
  return createTenureError('store-refused', `Redis refused: ${error.message}${remedy}`, {
    cause: error,
  })
}

/** An answer of the server, told by its name: several copies of the client's class may be about. */
function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}
