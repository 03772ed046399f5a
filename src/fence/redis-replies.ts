/** What the scripts of the Redis fence answer, as values. */
import type { Sealed } from '../core/fence.ts'
import { createTenureError } from '../core/tenure-error.ts'
import { readSortableToken } from '../core/token.ts'

export type ScriptReply =
  | { readonly type: 'ok'; readonly replies: readonly unknown[] }
  | { readonly type: 'stale' | 'unsealed'; readonly highest: Sealed | null }

/** @throws TenureError `record-malformed` when the fence's key holds something else than a fence. */
export function readReply(reply: unknown, key: string): ScriptReply {
  if (Array.isArray(reply)) return { type: 'ok', replies: reply }
  const [type, held] = String(reply).split(' ')
  const highest = held === undefined ? null : readSortableToken(held)
  if (type === 'stale' || type === 'unsealed') return { type, highest }
  throw createTenureError(
    'record-malformed',
    `Redis key ${key} is no fence of a known version: delete it if nothing of Tenure wrote it`,
    { details: { key } },
  )
}
