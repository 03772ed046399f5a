/**
 * Random numbers that a seed decides: a 32-bit multiply-and-mix generator (one counter, two rounds of
 * mixing), good enough to choose faults and delays. Not for secrets.
 */
import { type OperationId, operationId, type SessionId, sessionId } from '../core/ids.ts'
import type { Random } from '../ports/random.ts'

export interface SeededRandom extends Random {
  /** A whole number, 0 .. `below` - 1. */
  integer(below: number): number
  /**
   * An independent stream named by the label. What one part of a simulation draws from its own stream
   * never shifts what another part draws from another.
   */
  fork(label: string): SeededRandom
}

/**
 * @example
 * const random = createSeededRandom(7)
 * random.integer(6) // the same in every run
 */
export function createSeededRandom(seed: number | string): SeededRandom {
  const start = hash(String(seed))
  let counter = start

  const word = (): number => {
    counter = (counter + 0x9e3779b9) | 0
    let mixed = counter ^ (counter >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
  const hex = (bits: number): string => {
    const high = word() >>> (64 - bits)
    return high.toString(16).padStart(8, '0') + word().toString(16).padStart(8, '0')
  }
  const fraction = (): number => (word() * 0x20_0000 + (word() >>> 11)) / 2 ** 53

  return {
    fraction,
    integer: (below) => Math.floor(fraction() * below),
    sessionId: (): SessionId => {
      for (;;) {
        const text = hex(63)
        if (text !== '0000000000000000') return sessionId(text)
      }
    },
    operationId: (): OperationId => operationId(hex(64)),
    fork: (label) => createSeededRandom(`${start}/${label}`),
  }
}

/** FNV-1a over UTF-16 units, then mixed: seeds 1 and 2 start far apart. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x45d9f3b)
  return (value ^ (value >>> 16)) | 0
}
