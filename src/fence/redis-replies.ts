/** What the scripts of the Redis fence answer, as values. */
import type { Sealed } from '../core/fence.ts'
import { sessionId } from '../core/ids.ts'
import { createTenureError } from '../core/tenure-error.ts'

export type ScriptReply =
  | { readonly type: 'ok'; readonly value: unknown }
  | { readonly type: 'stale' | 'unsealed'; readonly highest: Sealed | null }

/** @throws TenureError `record-malformed` when the fence's key holds something else than a fence. */
export function readReply(reply: unknown, key: string): ScriptReply {
  const [type, ...rest] = Array.isArray(reply) ? (reply as readonly unknown[]) : []
  switch (type) {
    case 'ok':
      return { type, value: rest[0] }
    case 'stale':
    case 'unsealed':
      return { type, highest: rest.length === 0 ? null : readSealed(rest) }
    default:
      throw createTenureError(
        'record-malformed',
        `Redis key ${key} is no fence of a known version: delete it if nothing of Tenure wrote it`,
        { details: { key } },
      )
  }
}

function readSealed([incarnation, generation, session]: readonly unknown[]): Sealed {
  return {
    incarnation: Number(incarnation),
    generation: Number(generation),
    session: sessionId(String(session)),
  }
}
