/** A refusal on its way out of a transaction, which must roll back before the caller learns of it. */
import type { PoolClient } from 'pg'
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import type { EffectOutcome, SealOutcome } from './fence.ts'
import { askFence, type FenceRefusal } from './postgres-statements.ts'

class RefusedSignal extends Error {
  readonly refusal: FenceRefusal

  constructor(refusal: FenceRefusal) {
    super('refused by the fence')
    this.refusal = refusal
  }
}

/** Ends the transaction that it is called in unless the fence lets the token through. */
export async function requireFence(
  client: PoolClient,
  schema: string,
  call: 'tenure_seal' | 'tenure_guard',
  token: Token,
): Promise<void> {
  const refusal = await askFence(client, schema, call, token)
  if (refusal !== null) throw new RefusedSignal(refusal)
}

/** Runs a transaction with {@link requireFence} inside; its refusal becomes a value. */
export async function refusalOf<T>(run: () => Promise<T>): Promise<EffectOutcome<T>> {
  try {
    return { ok: true, value: await run() }
  } catch (error) {
    if (error instanceof RefusedSignal) return error.refusal
    throw error
  }
}

/** A seal is refused for one reason only, and by a token. */
export function staleOf({ highest }: FenceRefusal): SealOutcome {
  if (highest === null) throw createTenureError('invariant-broken', 'a seal met no fence')
  return { ok: false, reason: 'stale', highest }
}
