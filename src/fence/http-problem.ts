/**
 * What a fenced HTTP resource and its callers say to each other. Language-neutral:
 *
 *   request    header `tenure-token`: the token as text (`core/token-text.ts`)
 *   reply      header `tenure-fence: 1` on every reply of a fenced route, so that a caller can tell a
 *              resource that checks from one that does not know the header
 *   refusals   `application/problem+json` with a stable `code`:
 *              409 `fence-refused`      reason `stale` or `unsealed`, highest: the highest token seen, or null
 *              400 `invalid-argument`   no token, a malformed one, or one of another group
 *              503 `fence-not-ready`    the mark could not be kept, or effects hold up the seal; seal again
 */
import type { Sealed } from '../core/fence.ts'
import { sessionId } from '../core/ids.ts'
import type { Token } from '../core/token.ts'

export const TOKEN_HEADER = 'tenure-token'
export const FENCE_HEADER = 'tenure-fence'
export const FENCE_VERSION = '1'
export const SEAL_PATH = '/tenure/seal'
export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

export type FenceProblem = {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: 'fence-refused' | 'invalid-argument' | 'fence-not-ready' | 'invariant-broken'
  readonly detail: string
  /** With `fence-refused`. */
  readonly reason?: 'stale' | 'unsealed'
  readonly highest?: Sealed | null
  readonly partition?: number
}

export type FenceRefusal = {
  readonly reason: 'stale' | 'unsealed'
  readonly highest: Sealed | null
}

const STATUS: Readonly<Record<FenceProblem['code'], number>> = {
  'fence-refused': 409,
  'invalid-argument': 400,
  'fence-not-ready': 503,
  'invariant-broken': 500,
}

export function fenceProblem(code: FenceProblem['code'], detail: string): FenceProblem {
  const title = code.replaceAll('-', ' ')
  return { type: `urn:tenure:problem:${code}`, title, status: STATUS[code], code, detail }
}

export function refusalProblem(token: Token, refusal: FenceRefusal): FenceProblem {
  const { highest, reason } = refusal
  const seen = highest === null ? 'nothing' : `${highest.incarnation}.${highest.generation}`
  const given = `${token.incarnation}.${token.generation}`
  const detail = `token ${given} of partition ${token.partition} is ${reason}: the highest seen is ${seen}`
  return {
    ...fenceProblem('fence-refused', detail),
    reason,
    highest,
    partition: token.partition,
  }
}

/** The refusal that a problem's body tells of; null when it tells of none. */
export function readRefusal(body: unknown): FenceRefusal | null {
  if (typeof body !== 'object' || body === null) return null
  const { code, reason, highest } = body as Readonly<Record<string, unknown>>
  if (code !== 'fence-refused' || (reason !== 'stale' && reason !== 'unsealed')) return null
  return { reason, highest: readSealed(highest) }
}

function readSealed(value: unknown): Sealed | null {
  if (typeof value !== 'object' || value === null) return null
  const { incarnation, generation, session } = value as Readonly<Record<string, unknown>>
  if (typeof incarnation !== 'number' || typeof generation !== 'number') return null
  return { incarnation, generation, session: sessionId(String(session)) }
}
