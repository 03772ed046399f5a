/** A refusal on its way out of a transaction, which must roll back before the caller learns of it. */
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import type { EffectOutcome, SealOutcome } from './fence.ts'
import { fenceStatementError } from './postgres-errors.ts'
import {
  type FenceCall,
  type FenceRefusal,
  fenceCallSql,
  refusalIn,
} from './postgres-statements.ts'
import type { Opening } from './postgres-transaction.ts'

class RefusedSignal extends Error {
  readonly refusal: FenceRefusal

  constructor(refusal: FenceRefusal) {
    super('refused by the fence')
    this.refusal = refusal
  }
}

/** Ends the transaction that it opens unless the fence lets the token through. */
export function openFence(schema: string, call: FenceCall, token: Token): Opening {
  return {
    statement: fenceCallSql(schema, call, token),
    failed: (error) => {
      const refusal = refusalIn(error)
      return refusal === null ? fenceStatementError(error) : new RefusedSignal(refusal)
    },
  }
}

/** Runs a transaction with {@link openFence}; its refusal becomes a value. */
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
