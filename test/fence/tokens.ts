/** Tokens for fence tests. */
import { groupName, sessionId } from '../../src/core/ids.ts'
import type { Token } from '../../src/core/token.ts'

export const SESSION_A = sessionId('00000000000000aa')
export const SESSION_B = sessionId('00000000000000bb')

/** `tokenOf(7)`: generation 7 of partition 3 of group orders, of session A. */
export function tokenOf(generation: number, changes: Partial<Token> = {}): Token {
  return {
    group: groupName('orders'),
    partition: 3,
    incarnation: 1_764_440_000,
    generation,
    session: SESSION_A,
    ...changes,
  }
}

export function sealedOf(token: Token) {
  const { incarnation, generation, session } = token
  return { incarnation, generation, session }
}

/** What untyped callers hand over instead of a token. */
export const MALFORMED_TOKENS: readonly unknown[] = [
  null,
  'v1:orders/3@1.1#00000000000000aa',
  {},
  { ...tokenOf(1), generation: 0 },
  { ...tokenOf(1), generation: 1.5 },
  { ...tokenOf(1), generation: '1' },
  { ...tokenOf(1), incarnation: -1 },
  { ...tokenOf(1), incarnation: 2 ** 32 },
  { ...tokenOf(1), partition: -1 },
  { ...tokenOf(1), session: 'aa' },
  { ...tokenOf(1), session: '' },
  { ...tokenOf(1), group: 'a/b' },
]
