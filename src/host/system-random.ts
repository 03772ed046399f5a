/** The random port on the system's generator. */
import { randomBytes, randomInt } from 'node:crypto'
import { operationId, sessionId } from '../core/ids.ts'
import type { Random } from '../ports/random.ts'

/** Largest range that `randomInt` takes; 48 bits are finer than any use of a fraction here. */
const FRACTION_STEPS = 2 ** 48 - 1

/** Bytes fetched at once: an operation id is made for every step of every partition. */
const POOL_BYTES = 8192

export function createSystemRandom(): Random {
  let pool = ''
  let used = 0
  const eightBytes = () => {
    if (used >= pool.length) {
      pool = randomBytes(POOL_BYTES).toString('hex')
      used = 0
    }
    used += 16
    return pool.slice(used - 16, used)
  }
  return {
    fraction: () => randomInt(FRACTION_STEPS) / FRACTION_STEPS,
    sessionId() {
      for (;;) {
        const bytes = randomBytes(8)
        // Clears the sign bit: etcd's lease ids are positive 64-bit numbers.
        bytes[0] = (bytes[0] ?? 0) & 0x7f
        if (bytes.some((byte) => byte !== 0)) return sessionId(bytes.toString('hex'))
      }
    },
    operationId: () => operationId(eightBytes()),
  }
}
