/**
 * The late write of a point: an old owner stands still in the middle of a write while a new one seals.
 *
 *   old stands still -> new seals -> answered: new may write -> old goes on: refused, or landed before
 *                               \-> waits for the old one's effect -> old goes on: accepted, then sealed
 *
 * Nothing here rests on how long anything takes. The old owner stands still until the seal is answered, or
 * until the resource says that the seal waits for an effect that was admitted before it (a transaction
 * holds the fence's row, say), which only the old owner can end. A seal that does neither is a violation,
 * after a time that no working resource needs.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { PartitionId } from '../core/ids.ts'
import { describeToken, type Token } from '../core/token.ts'
import type { CheckedCalls } from './fence-conformance-calls.ts'
import type { FenceOwner, StopAt } from './fence-conformance-owner.ts'

export type LateWriteWorld = {
  readonly old: FenceOwner
  readonly next: FenceOwner
  /** True when a seal of the partition waits for an effect whose owner stands still. */
  sealWaits(partition: PartitionId): Promise<boolean>
  readonly heldUpAfterMs: number
}

export type LateWritePlan = {
  readonly oldToken: Token
  readonly newToken: Token
  readonly stopAt: StopAt
  /** For `during`: how long after the call began. */
  readonly stopAfterMs: number
  /** The new owner, once sealed, writes while the old one still stands. */
  readonly writesMeanwhile: boolean
}

/** What became of the new owner's seal while the old owner stood still. */
export type SealMet = 'answered' | 'waited' | 'held-up'

export type LateWrite = {
  /** Null: the write ended before it could be stopped. */
  readonly stoppedAt: StopAt | null
  readonly seal: SealMet
}

const POLL_MS = 2

export async function runLateWrite(
  world: LateWriteWorld,
  calls: CheckedCalls,
  plan: LateWritePlan,
): Promise<LateWrite> {
  const { oldToken, newToken, stopAt, stopAfterMs, writesMeanwhile } = plan
  const number = calls.nextNumber()
  const attempt = world.old.write({ token: oldToken, number, stopAt, stopAfterMs })
  const stopped = await attempt.stopped
  if (!stopped && stopAt !== 'during') calls.report('step-not-reached', stopAt)

  const sealing = calls.seals(world.next, newToken)
  const met = await meetSeal(world, newToken.partition, sealing)
  // An owner that has sent nothing has nothing admitted that a seal could wait for.
  if (met === 'held-up' || (met === 'waited' && stopAt === 'before')) {
    calls.report('new-owner-held-up', `seal of ${describeToken(newToken)}, stopped ${stopAt}`)
  }
  const landedBefore = met === 'answered' && (await calls.holds(number))
  const writing = met === 'answered' && writesMeanwhile && calls.acceptedWrite(world.next, newToken)
  if (writing !== false && !(await endsWithin(writing, world.heldUpAfterMs))) {
    calls.report('new-owner-held-up', `write of ${describeToken(newToken)}, stopped ${stopAt}`)
  }

  attempt.resume()
  calls.note(number, await attempt.outcome)
  await sealing
  await writing
  if (met === 'answered' && !landedBefore && (await calls.holds(number))) {
    const detail = `stopped ${stopAt}, let go after the seal of ${describeToken(newToken)}`
    calls.report('late-write-after-seal-accepted', detail)
  }
  return { stoppedAt: stopped ? stopAt : null, seal: met }
}

async function meetSeal(
  world: LateWriteWorld,
  partition: PartitionId,
  sealing: Promise<void>,
): Promise<SealMet> {
  const polls = Math.ceil(world.heldUpAfterMs / POLL_MS)
  for (let poll = 0; poll < polls; poll += 1) {
    if (await endsWithin(sealing, POLL_MS)) return 'answered'
    if (await world.sealWaits(partition)) return 'waited'
  }
  return 'held-up'
}

async function endsWithin(work: Promise<void>, ms: number): Promise<boolean> {
  const stop = new AbortController()
  try {
    const late = delay(ms, false, { signal: stop.signal }).catch(() => false)
    return await Promise.race([work.then(() => true), late])
  } finally {
    stop.abort()
  }
}
