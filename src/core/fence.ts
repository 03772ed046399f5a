/**
 * What a protected resource decides, whatever it is made of. It remembers per partition the highest token
 * that was sealed, durably, and keeps this rule in one atomic step with the effect (S2, S3, S7):
 *
 *   seal(token)     above the highest, or the highest itself (same session): it becomes the highest
 *                   below it, or at its position from another session: refused, naming the highest
 *   effect(token)   exactly the highest (position and session): accepted
 *                   anything else: refused, naming the highest
 *
 * A new owner seals all its resources before it reads from any, so that a late write of an old owner
 * cannot land in between. An effect never raises the fence by itself: an owner that forgot to seal is told.
 */
import type { PartitionId, SessionId } from './ids.ts'
import type { Position } from './token.ts'
import { comparePositions } from './token.ts'

/** The part of a token that fences look at. */
export type FenceToken = Position & {
  readonly partition: PartitionId
  readonly session: SessionId
}

/** The highest token that a resource has sealed. */
export type Sealed = Position & { readonly session: SessionId }

export type SealDecision = 'raise' | 'keep' | 'refuse'

export function decideSeal(highest: Sealed | null, token: Sealed): SealDecision {
  if (highest === null) return 'raise'
  const order = comparePositions(token, highest)
  if (order > 0) return 'raise'
  return order === 0 && token.session === highest.session ? 'keep' : 'refuse'
}

/** `unsealed`: the token is above the highest, so its owner has not sealed this resource. */
export type EffectDecision = 'accept' | 'stale' | 'unsealed'

export function decideEffect(highest: Sealed | null, token: Sealed): EffectDecision {
  if (highest === null) return 'unsealed'
  const order = comparePositions(token, highest)
  if (order > 0) return 'unsealed'
  return order === 0 && token.session === highest.session ? 'accept' : 'stale'
}
