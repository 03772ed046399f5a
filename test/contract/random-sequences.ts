/**
 * Random sequences of store calls, made from a seed alone: few keys, few values and two leases, so that
 * calls meet each other's traces often. Refused calls are part of it.
 */
import type { SessionId } from '../../src/core/ids.ts'
import type { Compare, Operation, Transaction } from '../../src/core/transaction.ts'
import { createSeededRandom, type SeededRandom } from '../../src/testing/index.ts'

export type Step =
  | { readonly type: 'transact'; readonly transaction: Transaction }
  | {
      readonly type: 'list'
      readonly prefix: string
      readonly limit: number
      readonly after: string | null
      /** As it was when the step of this number was answered, now, or at a revision not yet made. */
      readonly at: number | 'now' | 'future'
    }
  | { readonly type: 'open-lease' | 'renew-lease' | 'close-lease'; readonly session: SessionId }

const STEPS = 12
const KEYS = ['a', 'b', 'b/1', 'b/2', 'c']
const VALUES = ['', '1', '2']
const PREFIXES = ['', 'b', 'b/', 'none']
const DEPTH_MAX = 2

/** The steps of a seed, under the prefix. */
export function randomSequence(seed: number, prefix: string): readonly Step[] {
  const random = createSeededRandom(`sequence ${seed}`)
  const sessions = [random.sessionId(), random.sessionId()]
  const one = <T>(from: readonly T[]): T => from[random.integer(from.length)] as T
  const key = () => prefix + one(KEYS)
  const transaction = (depth: number): Transaction => ({
    compare: several(random, 2, () => randomCompare(random, key(), one(VALUES), one(sessions))),
    success: several(random, 3, () => operation(depth)),
    failure: several(random, 2, () => operation(depth)),
  })
  const operation = (depth: number): Operation => {
    const draw = random.integer(depth < DEPTH_MAX ? 12 : 9)
    if (draw < 3) return { type: 'put', key: key(), value: one(VALUES) }
    if (draw < 4) return { type: 'put', key: key(), value: one(VALUES), session: one(sessions) }
    if (draw < 6) return { type: 'delete', key: key() }
    if (draw < 8) return { type: 'get', key: key() }
    if (draw < 9) return { type: 'summary', prefix: prefix + one(PREFIXES) }
    return { type: 'transaction', ...transaction(depth + 1) }
  }
  const step = (): Step => {
    const draw = random.integer(16)
    if (draw < 10) return { type: 'transact', transaction: transaction(0) }
    if (draw < 13) {
      const under = prefix + one(PREFIXES)
      const afterAny = KEYS.map((name) => prefix + name).filter((name) => name.startsWith(under))
      return {
        type: 'list',
        prefix: under,
        limit: 1 + random.integer(4),
        after: random.integer(2) === 0 || afterAny.length === 0 ? null : one(afterAny),
        at: one(['now', 'now', 'now', 'now', 'future', 0, 2, 4, 6, 8] as const),
      }
    }
    const type = (['open-lease', 'renew-lease', 'close-lease'] as const)[draw - 13]
    return { type: type ?? 'open-lease', session: one(sessions) }
  }
  // Leases that nobody opened refuse every put under them, so most sequences begin with one.
  const opening: Step = { type: 'open-lease', session: one(sessions) }
  return [opening, ...Array.from({ length: STEPS - 1 }, step)]
}

function several<T>(random: SeededRandom, max: number, make: () => T): T[] {
  return Array.from({ length: random.integer(max + 1) }, make)
}

function randomCompare(
  random: SeededRandom,
  key: string,
  value: string,
  session: SessionId,
): Compare {
  const types = ['value-equals', 'absent', 'present', 'lease-equals', 'lease-differs'] as const
  const type = types[random.integer(types.length)] ?? 'absent'
  switch (type) {
    case 'value-equals':
      return { type, key, value }
    case 'absent':
    case 'present':
      return { type, key }
    case 'lease-equals':
    case 'lease-differs':
      return { type, key, session }
    default:
      return type satisfies never
  }
}
