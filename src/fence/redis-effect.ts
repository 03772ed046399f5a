/**
 * A guarded effect as the keys and arguments of its script. Its shape is looked at word by word: the client
 * would flatten a list among the words, whereupon a later command begins elsewhere than it was counted, and
 * would write what is undefined as an empty text.
 */
import { badEffect } from './fence.ts'
import type { CommandChecker, RedisCommand } from './redis-commands.ts'

type RedisWord = string | number | Buffer

/** All keys must be `redisKey`s of the token's partition. */
export type RedisEffect =
  /** Run in their order; the value is the list of their replies. */
  | { readonly commands: readonly RedisCommand[] }
  /** Lua that sees its own KEYS and ARGV; the value is what it returns. It writes only to its KEYS. */
  | {
      readonly script: string
      readonly keys: readonly string[]
      readonly args?: readonly RedisWord[]
    }

export type EffectWords = {
  readonly keys: readonly string[]
  readonly args: readonly RedisWord[]
}

const NO_ARGS: readonly RedisWord[] = []

/**
 * A promise only where the server must be asked for keys.
 *
 * @throws TenureError `invalid-argument`: an effect of another shape, or as `CommandChecker.keysOf`
 */
export function wordsOf(
  checker: CommandChecker,
  effect: RedisEffect,
): EffectWords | Promise<EffectWords> {
  if (typeof effect !== 'object' || effect === null) throw noEffect()
  if (!('commands' in effect)) return wordsOfScript(effect)
  if (!Array.isArray(effect.commands)) throw noEffect()
  for (const command of effect.commands) refuseNoCommand(command)
  const args = argsOf(effect.commands)
  const keys = keysOf(checker, effect.commands)
  return keys instanceof Promise
    ? keys.then((all) => ({ keys: distinct(all), args }))
    : { keys: distinct(keys), args }
}

/** The command, when there is just one: it has a script of its own, which counts no words. */
export function onlyCommand(commands: readonly RedisCommand[]): RedisCommand | null {
  return commands.length === 1 ? (commands[0] as RedisCommand) : null
}

/** As the script for them reads them. */
function argsOf(commands: readonly RedisCommand[]): readonly RedisWord[] {
  return onlyCommand(commands) ?? commands.flatMap((command) => [command.length, ...command])
}

function wordsOfScript(effect: Extract<RedisEffect, { script: string }>): EffectWords {
  const { script, keys, args = NO_ARGS } = effect
  if (typeof script !== 'string' || !Array.isArray(keys) || !Array.isArray(args)) throw noEffect()
  for (const key of keys) {
    if (typeof key !== 'string') throw badEffect(`a key of a script is a text, not ${kindOf(key)}`)
  }
  refuseNoWords(args)
  return { keys, args }
}

function refuseNoCommand(command: RedisCommand): void {
  if (!Array.isArray(command)) {
    throw badEffect(`a command is a list of its name and its words, not ${kindOf(command)}`)
  }
  if (command.length === 0) throw badEffect('a command has no name')
  if (typeof command[0] !== 'string') {
    throw badEffect(`a command's name is a text, not ${kindOf(command[0])}`)
  }
  refuseNoWords(command)
}

function refuseNoWords(words: readonly RedisWord[]): void {
  for (const word of words) {
    if (typeof word === 'string' || typeof word === 'number' || Buffer.isBuffer(word)) continue
    throw badEffect(`a word is a text, a number or a Buffer, not ${kindOf(word)}`)
  }
}

function noEffect(): Error {
  return badEffect(
    'give { commands: [[name, ...words], ...] } or { script, keys: [...], args: [...] }',
  )
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return Array.isArray(value) ? 'a list' : `of type ${typeof value}`
}

function keysOf(
  checker: CommandChecker,
  commands: readonly RedisCommand[],
): string[] | Promise<string[]> {
  const keys: string[] = []
  for (const [index, command] of commands.entries()) {
    const asked = checker.keysOf(command)
    if (asked instanceof Promise) return askForRest(checker, commands.slice(index + 1), keys, asked)
    for (const key of asked) keys.push(key)
  }
  return keys
}

/** One after the other: a command that is refused must leave no answer behind that nobody waits for. */
async function askForRest(
  checker: CommandChecker,
  commands: readonly RedisCommand[],
  keys: string[],
  asked: Promise<readonly string[]>,
): Promise<string[]> {
  keys.push(...(await asked))
  for (const command of commands) keys.push(...(await checker.keysOf(command)))
  return keys
}

function distinct(keys: readonly string[]): readonly string[] {
  return keys.length > 1 ? [...new Set(keys)] : keys
}
