/**
 * One point of the conformance suite, on a partition of its own: an old owner is stopped in the middle of a
 * write, a new owner seals and writes, the old one is let go, and everything that the resource then answers
 * and holds is compared with the rule of `core/fence.ts`.
 */
import { groupName, type PartitionId } from '../core/ids.ts'
import type { Token } from '../core/token.ts'
import { type AppliedEffects, createCheckedCalls, type Report } from './fence-conformance-calls.ts'
import {
  type LateWrite,
  type LateWritePlan,
  type LateWriteWorld,
  runLateWrite,
} from './fence-conformance-late-write.ts'
import type { StopAt } from './fence-conformance-owner.ts'
import type { SeededRandom } from './seeded-random.ts'

export type PointWorld = LateWriteWorld & { readonly applied: AppliedEffects }

/** What a point leaves behind, for the checks after a restart. */
export type PointResult = LateWrite & { readonly oldToken: Token; readonly newToken: Token }

const DURING_MAX_MS = 3

export async function runPoint(
  world: PointWorld,
  partition: PartitionId,
  stopAt: StopAt,
  random: SeededRandom,
  report: Report,
): Promise<PointResult> {
  const tokens = drawTokens(partition, random)
  const calls = createCheckedCalls(world.applied, partition, report)

  await calls.refusedWrite(world.old, tokens.old, 'unsealed', null, 'unsealed-effect-accepted')
  await calls.seals(world.old, tokens.old)
  await calls.seals(world.old, tokens.old)
  await calls.acceptedWrite(world.old, tokens.old)
  // Not at every point: a resource that takes an effect for a seal would refuse the late write for it.
  if (random.integer(2) === 0) {
    const violation = 'unsealed-effect-accepted'
    await calls.refusedWrite(world.next, tokens.new, 'unsealed', tokens.old, violation)
  }

  const plan: LateWritePlan = {
    oldToken: tokens.old,
    newToken: tokens.new,
    stopAt,
    stopAfterMs: random.integer(DURING_MAX_MS),
    writesMeanwhile: random.integer(2) === 0,
  }
  const late = await runLateWrite(world, calls, plan)

  await calls.acceptedWrite(world.next, tokens.new)
  await calls.refusedWrite(world.old, tokens.old, 'stale', tokens.new, 'stale-effect-accepted')
  await calls.refusedSeal(world.old, tokens.old, tokens.new, 'stale-seal-accepted')
  const equal = 'equal-position-of-another-session-accepted'
  await calls.refusedSeal(world.old, tokens.equal, tokens.new, equal)
  await calls.refusedWrite(world.old, tokens.equal, 'stale', tokens.new, equal)
  await calls.acceptedWrite(world.next, tokens.new)
  await calls.checkHeld()
  return { oldToken: tokens.old, newToken: tokens.new, ...late }
}

type Tokens = { readonly old: Token; readonly new: Token; readonly equal: Token }

/** The new one is above the old by generation or by incarnation (then its generation may be lower). */
function drawTokens(partition: PartitionId, random: SeededRandom): Tokens {
  const base = {
    group: groupName('conformance'),
    partition,
    incarnation: 1 + random.integer(2 ** 31),
    generation: 1 + random.integer(2 ** 20),
  }
  const old = { ...base, session: random.sessionId() }
  const raised =
    random.integer(3) === 0
      ? { incarnation: base.incarnation + 1 + random.integer(9), generation: 1 + random.integer(9) }
      : { generation: base.generation + 1 + random.integer(9) }
  const next = { ...base, ...raised, session: random.sessionId() }
  return { old, new: next, equal: { ...next, session: random.sessionId() } }
}
