/** Sealing in `acquire`: a refusal, returned or thrown, ends the acquire, and the member is told of it. */
import { createTenureError } from '../core/tenure-error.ts'
import type { Partition } from '../runtime/worker-options.ts'
import { tellRefusal } from './attempts.ts'
import type { Seal } from './consumer-options.ts'

/** @throws TenureError `fence-refused` when the resource has sealed a newer token. */
export async function sealOrThrow(seal: Seal, p: Partition): Promise<void> {
  try {
    const outcome = await seal(p.token, p)
    if (outcome === undefined || outcome.ok) return
    const { incarnation, generation } = p.token
    throw createTenureError(
      'fence-refused',
      `partition ${p.id}: a resource will not be sealed by token ${incarnation}.${generation}`,
      { details: { reason: 'stale', highest: outcome.highest ?? null, partition: p.id } },
    )
  } catch (error: unknown) {
    tellRefusal(p, error)
    throw error
  }
}
