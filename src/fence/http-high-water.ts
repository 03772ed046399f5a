/**
 * Where an HTTP resource keeps the highest token of each partition, so that a restart does not forget it.
 *
 * The file: one line of text per raise (`core/token-text.ts`), appended and flushed to disk before the seal
 * is answered. A line that a crash tore is the last one and was never answered, so it is cut off. When the
 * file is opened, and whenever it has grown to many times its content, it is written anew beside itself and
 * renamed over. So it is before the next raise, too, when a raise has failed: half a line may stand at its
 * end, and what a failed flush has dropped a later one does not bring back.
 *
 * Not promised: that two processes may share the file. One process owns a resource's file; a resource of
 * many processes keeps its mark in the database that its effects go to.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { decideSeal, type Sealed } from '../core/fence.ts'
import type { PartitionId } from '../core/ids.ts'
import { createTenureError, isTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import { decodeTokenHeader, encodeTokenHeader } from '../core/token-text.ts'

/** As durable as the resource's effects, or the fence is not. */
export interface HighWaterStore {
  /** Null when nothing was sealed. */
  highest(partition: PartitionId): Sealed | null
  /** Resolves when the token is durable; `highest` gives it from then on. Called with rising tokens only. */
  raise(token: Token): Promise<void> | void
}

const LINES_PER_PARTITION_MAX = 16
const LINES_MIN = 1000

export interface HighWaterFile extends HighWaterStore {
  raise(token: Token): void
  close(): void
}

/**
 * @throws TenureError `record-malformed` for a file that something else wrote
 * @example await app.register(fencePlugin, { group: 'orders', store: openHighWaterFile('fence.log') })
 */
export function openHighWaterFile(path: string): HighWaterFile {
  const tokens = readTokens(path)
  let current = rewrite(path, tokens)
  let isSound = true
  const renew = () => {
    // Until it is done, the file that is open may be one that its name no longer leads to.
    isSound = false
    const old = current
    current = rewrite(path, tokens)
    closeSync(old.file)
    isSound = true
  }
  return {
    highest: (partition) => sealedOf(tokens.get(partition)),
    raise(token) {
      if (!isSound) renew()
      isSound = false
      append(current.file, `${encodeTokenHeader(token)}\n`)
      isSound = true
      tokens.set(token.partition, token)
      current.lines += 1
      if (current.lines >= Math.max(LINES_MIN, tokens.size * LINES_PER_PARTITION_MAX)) {
        // The raise is done: that there is no room for a new file is no reason to refuse it.
        tryTo(renew)
      }
    },
    close: () => closeSync(current.file),
  }
}

/** For tests and for resources that keep nothing: a restart forgets it. */
export function createMemoryHighWater(): HighWaterStore {
  const tokens = new Map<PartitionId, Token>()
  return {
    highest: (partition) => sealedOf(tokens.get(partition)),
    raise: (token) => {
      tokens.set(token.partition, token)
    },
  }
}

function readTokens(path: string): Map<PartitionId, Token> {
  const tokens = new Map<PartitionId, Token>()
  const lines = readText(path).split('\n')
  // What follows the last line end is empty, or torn.
  lines.pop()
  for (const [index, line] of lines.entries()) {
    const token = readLine(path, line, index + 1)
    const sealed = sealedOf(tokens.get(token.partition))
    if (decideSeal(sealed, token) === 'raise') tokens.set(token.partition, token)
  }
  return tokens
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

function readLine(path: string, line: string, number: number): Token {
  try {
    return decodeTokenHeader(line)
  } catch (error) {
    if (!isTenureError(error)) throw error
    throw createTenureError('record-malformed', `${path}, line ${number}: ${error.message}`, {
      cause: error,
      details: { path, line: number },
    })
  }
}

type OpenFile = { readonly file: number; lines: number }

/** The new file is whole on disk before it takes the old one's place. */
function rewrite(path: string, tokens: ReadonlyMap<PartitionId, Token>): OpenFile {
  const beside = `${path}.new`
  const file = openSync(beside, 'w')
  try {
    append(file, [...tokens.values()].map((token) => `${encodeTokenHeader(token)}\n`).join(''))
    renameSync(beside, path)
    const folder = openSync(dirname(path), 'r')
    fsyncSync(folder)
    closeSync(folder)
  } catch (error) {
    closeSync(file)
    throw error
  }
  return { file, lines: tokens.size }
}

/** All of it, on disk. */
function append(file: number, text: string): void {
  writeFileSync(file, text)
  fsyncSync(file)
}

function tryTo(work: () => void): void {
  try {
    work()
  } catch {
    // Tried again at a later raise.
  }
}

function sealedOf(token: Token | undefined): Sealed | null {
  if (token === undefined) return null
  const { incarnation, generation, session } = token
  return { incarnation, generation, session }
}
