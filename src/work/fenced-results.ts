/**
 * What an author's function at a fenced resource comes to. It returns what the fence's own functions do, or
 * throws; a refusal is the same either way, so that nobody takes refused work for done by neglect:
 *
 *   nothing, or { ok: true }              done
 *   { ok: false, reason, highest }        refused by the fence: `fence-refused`, the grant's run ends
 *   any other { ok: false }               failed: tried again as if it had thrown (a `Response` is one)
 */
import { createTenureError, isTenureError, type TenureError } from '../core/tenure-error.ts'
import type { Position, Token } from '../core/token.ts'
import type { Partition } from '../runtime/worker-options.ts'

/** Nothing, or an outcome as of `Fence.seal`, `Fence.guard` and `fencedTransaction`. */
export type FencedResult =
  // biome-ignore lint/suspicious/noConfusingVoidType: authors' functions that return nothing are typed so
  void | { readonly ok: boolean; readonly reason?: unknown; readonly highest?: unknown }

/** Raises every resource's fence to the token, before anything is read of any (S7). */
export type Seal = (token: Token, partition: Partition) => FencedResult | Promise<FencedResult>

/** @throws TenureError `fence-refused` for a refusal, `conflict` for another outcome that is not ok */
export function requireOk(result: FencedResult, p: Partition): void {
  if (result === undefined || result === null || result.ok !== false) return
  const { reason } = result
  if (reason === 'stale' || reason === 'unsealed') throw refusal(p, reason, result.highest)
  throw createTenureError('conflict', `partition ${p.id}: the effect's outcome is not ok`, {
    details: { partition: p.id, reason: reason ?? null },
  })
}

/**
 * Sealing in `acquire`: a refusal ends the acquire, and the member is told of it.
 * @throws TenureError `fence-refused` when the resource has sealed a newer token
 */
export async function sealOrThrow(seal: Seal, p: Partition): Promise<void> {
  try {
    const outcome = await seal(p.token, p)
    if (outcome === undefined || outcome.ok) return
    throw refusal(p, 'stale', outcome.highest)
  } catch (error: unknown) {
    tellRefusal(p, error)
    throw error
  }
}

/** Passes on what the resource has sealed, where the refusal says it. */
export function tellRefusal(p: Partition, error: unknown): void {
  if (!isTenureError(error, 'fence-refused')) return
  const highest = error.details['highest']
  if (isPosition(highest)) p.refused(highest)
}

function refusal(p: Partition, reason: string, highest: unknown): TenureError {
  const { incarnation, generation } = p.token
  return createTenureError(
    'fence-refused',
    `partition ${p.id}: a resource refused token ${incarnation}.${generation} as ${reason}`,
    { details: { reason, highest: highest ?? null, partition: p.id } },
  )
}

function isPosition(value: unknown): value is Position {
  if (typeof value !== 'object' || value === null) return false
  const { incarnation, generation } = value as Partial<Position>
  return typeof incarnation === 'number' && typeof generation === 'number'
}
