/**
 * The one small interface of all fences. What a resource decides is in `core/fence.ts`; each file beside
 * this one puts it into one kind of resource and is the only importer of that resource's client, which
 * the user passes in.
 *
 * Promised: check and effect are one atomic step at the resource; the highest token is as durable as the
 * effects are. Not promised: anything about effects that go around the fence.
 */
import type { Sealed } from '../core/fence.ts'
import type { TenureError } from '../core/tenure-error.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'

export type SealOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'stale'; readonly highest: Sealed }

export type EffectOutcome<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false
      /** `unsealed`: call `seal` first. `stale`: a newer owner has sealed; stop. */
      readonly reason: 'stale' | 'unsealed'
      readonly highest: Sealed | null
    }

/**
 * `Effect` is what the resource runs atomically with its check: a function of a transaction, a script, a
 * list of operations.
 */
export interface Fence<Effect, Result> {
  /**
   * Raises the fence to the token: at every resource, before the first read of any (S7).
   * @throws TenureError when the resource cannot be asked, or is not set up (naming the remedy).
   */
  seal(token: Token): Promise<SealOutcome>
  /** Runs the effect if, at that moment, the token is the sealed one. */
  guard(token: Token, effect: Effect): Promise<EffectOutcome<Result>>
}

/** A refusal as an error, for callers that would rather throw. */
export function fenceRefused(
  token: Token,
  refusal: { readonly reason: string; readonly highest: Sealed | null },
): TenureError {
  const { highest } = refusal
  const seen = highest === null ? 'nothing' : `${highest.incarnation}.${highest.generation}`
  return createTenureError(
    'fence-refused',
    `partition ${token.partition}: token ${token.incarnation}.${token.generation} is ${refusal.reason}, the resource has sealed ${seen}`,
    { details: { reason: refusal.reason, highest, partition: token.partition } },
  )
}

/** An effect that is refused before anything is sent; the message names what it must be. */
export function badEffect(message: string): TenureError {
  return createTenureError('invalid-argument', message, { details: { field: 'effect' } })
}
