/**
 * What a guarded effect's commands touch, asked of the server itself, which knows all its commands: their
 * keys, and whether a script may run them. Everything that can be refused is refused before anything is
 * sent, since a script that fails half-way is not undone.
 */
import type { Cluster, Redis } from 'ioredis'
import { badEffect } from './fence.ts'

/** Name and arguments, as `['hset', key, field, value]`. */
export type RedisCommand = readonly [name: string, ...words: (string | number | Buffer)[]]

type CommandFacts = {
  /** Words, the name included; negative: at least so many. */
  readonly arity: number
  readonly flags: ReadonlySet<string>
  readonly firstKey: number
  readonly lastKey: number
  readonly keyStep: number
}

/** Lua's own limit for the arguments of one call is a little above. */
const WORDS_MAX = 7000
/** Commands without a key that do no harm beyond the partition. */
const KEYLESS = new Set(['publish'])

export type CommandChecker = {
  /**
   * A promise only where the server must be asked: once for each name, and for the few commands whose keys
   * stand nowhere fixed. It is called for every effect.
   *
   * @throws TenureError `invalid-argument`: unknown, of wrong length, or not for scripts.
   */
  keysOf(command: RedisCommand): readonly string[] | Promise<readonly string[]>
}

export function createCommandChecker(client: Redis | Cluster): CommandChecker {
  const known = new Map<string, CommandFacts>()
  const learn = async (command: RedisCommand, name: string) => {
    const facts = readFacts(await client.call('COMMAND', 'INFO', name))
    if (facts === null) throw badEffect(`Redis has no command "${name}"`)
    known.set(name, facts)
    return keysWith(client, command, name, facts)
  }
  return {
    keysOf(command) {
      const name = command[0].toLowerCase()
      const facts = known.get(name)
      return facts === undefined ? learn(command, name) : keysWith(client, command, name, facts)
    },
  }
}

function keysWith(
  client: Redis | Cluster,
  command: RedisCommand,
  name: string,
  facts: CommandFacts,
): readonly string[] | Promise<readonly string[]> {
  refuseUnfit(command, name, facts)
  if (facts.firstKey === 0 || facts.flags.has('movablekeys')) {
    return askForKeys(client, command).then((keys) => refuseKeyless(keys, name))
  }
  return refuseKeyless(keysByPosition(command, facts), name)
}

function refuseKeyless(keys: readonly string[], name: string): readonly string[] {
  if (keys.length > 0 || KEYLESS.has(name)) return keys
  throw badEffect(`${name} names no key: a guarded effect writes keys of its partition only`)
}

function refuseUnfit(command: RedisCommand, name: string, facts: CommandFacts): void {
  if (facts.flags.has('noscript')) throw badEffect(`${name} cannot be part of a guarded effect`)
  const fits = facts.arity < 0 ? command.length >= -facts.arity : command.length === facts.arity
  if (!fits) throw badEffect(`${name} has a wrong number of arguments`)
  if (command.length > WORDS_MAX) {
    throw badEffect(`${name} has ${command.length} words: ${WORDS_MAX} at most, split the command`)
  }
}

function keysByPosition(command: RedisCommand, facts: CommandFacts): readonly string[] {
  const last = facts.lastKey < 0 ? command.length + facts.lastKey : facts.lastKey
  const keys: string[] = []
  for (let index = facts.firstKey; index <= last; index += Math.max(1, facts.keyStep)) {
    keys.push(String(command[index]))
  }
  return keys
}

async function askForKeys(
  client: Redis | Cluster,
  command: RedisCommand,
): Promise<readonly string[]> {
  // The server has no answer about a bare name, which has no key in any case.
  if (command.length === 1) return []
  try {
    return (await client.call('COMMAND', ['GETKEYS', ...command])) as string[]
  } catch (error) {
    if (/no key arguments/i.test(String(error))) return []
    throw error
  }
}

/** Null for an unknown command. The reply is a list of one entry per name that was asked for. */
function readFacts(reply: unknown): CommandFacts | null {
  const entry = Array.isArray(reply) ? (reply[0] as unknown) : null
  if (!Array.isArray(entry)) return null
  const [, arity, flags, firstKey, lastKey, keyStep] = entry as readonly unknown[]
  return {
    arity: Number(arity),
    flags: new Set([...(flags as Iterable<unknown>)].map(String)),
    firstKey: Number(firstKey),
    lastKey: Number(lastKey),
    keyStep: Number(keyStep),
  }
}
