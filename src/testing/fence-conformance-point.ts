/**
 * One point of the conformance suite, on a partition of its own: an old owner is stopped in the middle of a
 * write, a new owner seals and writes, the old one is let go, and everything that the resource then answers
 * and holds is compared with the rule of `core/fence.ts`.
 *
 * While the old owner stands still inside a transaction, a resource may rightly make the new owner's seal
 * wait. The point waits for the seal a short, seeded time, and then lets the old owner go.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Sealed } from '../core/fence.ts'
import { groupName, type PartitionId } from '../core/ids.ts'
import { comparePositions, describeToken, isSameGrant, type Token } from '../core/token.ts'
import type { SealOutcome } from '../fence/fence.ts'
import type { FenceOwner, StopAt, WriteOutcome } from './fence-conformance-owner.ts'
import type { SeededRandom } from './seeded-random.ts'

/** What is wrong with a fence. */
export type FenceViolationName =
  | 'unsealed-effect-accepted'
  | 'current-owner-refused'
  | 'late-write-after-seal-accepted'
  | 'stale-effect-accepted'
  | 'stale-seal-accepted'
  | 'equal-position-of-another-session-accepted'
  | 'accepted-tokens-decreased'
  | 'one-token-two-writers'
  | 'refusal-does-not-name-the-highest'
  | 'refused-effect-applied'
  | 'accepted-effect-missing'
  | 'high-water-mark-lost'
  | 'call-failed'

export type FenceViolation = {
  readonly name: FenceViolationName
  /** Number of the point, which is its partition too. */
  readonly point: number
  readonly detail: string
}

/** One effect that the resource holds. */
export type AppliedEffect = {
  readonly incarnation: number
  readonly generation: number
  readonly session: string
  readonly number: number
}

export type PointWorld = {
  readonly old: FenceOwner
  readonly next: FenceOwner
  applied(partition: PartitionId): Promise<readonly AppliedEffect[]>
}

/** What a point leaves behind, for the checks after a restart. */
export type PointResult = {
  readonly oldToken: Token
  readonly newToken: Token
  readonly stoppedAt: StopAt | null
  /** The old owner stood still while the new owner's seal was answered. */
  readonly sealedMeanwhile: boolean
}

export type Report = (name: FenceViolationName, detail: string) => void

const STOPS: readonly StopAt[] = ['before', 'during', 'checked', 'written']
const DURING_MAX_MS = 3
const HOLD_MAX_MS = 12

export async function runPoint(
  world: PointWorld,
  partition: PartitionId,
  random: SeededRandom,
  report: Report,
): Promise<PointResult> {
  const tokens = drawTokens(partition, random)
  const point = createPoint(world, partition, report)

  await point.refusedWrite(world.old, tokens.old, 'unsealed', null, 'unsealed-effect-accepted')
  await point.seals(world.old, tokens.old)
  await point.seals(world.old, tokens.old)
  await point.acceptedWrite(world.old, tokens.old)
  // Not at every point: a resource that takes an effect for a seal would refuse the late write for it.
  if (random.integer(2) === 0) {
    const violation = 'unsealed-effect-accepted'
    await point.refusedWrite(world.next, tokens.new, 'unsealed', tokens.old, violation)
  }

  const late = await lateWrite(world, point, tokens, random)

  await point.acceptedWrite(world.next, tokens.new)
  await point.refusedWrite(world.old, tokens.old, 'stale', tokens.new, 'stale-effect-accepted')
  await point.refusedSeal(world.old, tokens.old, tokens.new, 'stale-seal-accepted')
  const equal = 'equal-position-of-another-session-accepted'
  await point.refusedSeal(world.old, tokens.equal, tokens.new, equal)
  await point.refusedWrite(world.old, tokens.equal, 'stale', tokens.new, equal)
  await point.acceptedWrite(world.next, tokens.new)
  await point.checkHeld()
  return { oldToken: tokens.old, newToken: tokens.new, ...late }
}

/** The old owner is stopped in a write; the new one seals, and in half of the points writes too. */
async function lateWrite(
  world: PointWorld,
  point: Point,
  tokens: Tokens,
  random: SeededRandom,
): Promise<Pick<PointResult, 'stoppedAt' | 'sealedMeanwhile'>> {
  const stopAt = STOPS[random.integer(STOPS.length)] ?? 'during'
  const writesMeanwhile = random.integer(2) === 0
  const holdMs = random.integer(HOLD_MAX_MS)
  const stopAfterMs = random.integer(DURING_MAX_MS)
  const number = point.nextNumber()
  const attempt = world.old.write({ token: tokens.old, number, stopAt, stopAfterMs })
  const stopped = await attempt.stopped

  const sealing = point.seals(world.next, tokens.new)
  const sealedMeanwhile = await Promise.race([
    sealing.then(() => true),
    delay(holdMs, false, { ref: true }),
  ])
  const landed = async () => (await point.held()).some((effect) => effect.number === number)
  const landedBeforeResume = sealedMeanwhile && (await landed())
  if (sealedMeanwhile && writesMeanwhile) await point.acceptedWrite(world.next, tokens.new)
  attempt.resume()
  const outcome = await attempt.outcome
  await sealing
  point.checkLate(number, outcome)
  if (stopped && sealedMeanwhile && !landedBeforeResume && (await landed())) {
    const at = `stopped ${stopAt}, let go after the seal of ${describeToken(tokens.new)}`
    point.report('late-write-after-seal-accepted', at)
  }
  return { stoppedAt: stopped ? stopAt : null, sealedMeanwhile: stopped && sealedMeanwhile }
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

export type Point = ReturnType<typeof createPoint>

/** Calls with what each must answer, and the list of what was answered. */
export function createPoint(
  world: Pick<PointWorld, 'applied'>,
  partition: PartitionId,
  report: Report,
  firstNumber = 1,
) {
  const accepted = new Set<number>()
  const refused = new Set<number>()
  let lastNumber = firstNumber - 1
  const nextNumber = () => {
    lastNumber += 1
    return lastNumber
  }
  const note = (number: number, outcome: WriteOutcome) => {
    if (outcome.type === 'accepted') accepted.add(number)
    else if (outcome.type === 'refused') refused.add(number)
    else report('call-failed', `write: ${outcome.message}`)
  }
  const write = async (owner: FenceOwner, token: Token): Promise<WriteOutcome> => {
    const number = nextNumber()
    const attempt = owner.write({ token, number, stopAt: null, stopAfterMs: 0 })
    const outcome = await attempt.outcome
    note(number, outcome)
    return outcome
  }
  const seal = async (owner: FenceOwner, token: Token): Promise<SealOutcome | null> => {
    try {
      return await owner.seal(token)
    } catch (error) {
      report('call-failed', `seal: ${error instanceof Error ? error.message : String(error)}`)
      return null
    }
  }
  const names = (token: Token, named: Sealed | null, highest: Sealed | null) => {
    const same =
      named === null || highest === null ? named === highest : isSameGrant(named, highest)
    if (same) return
    report(
      'refusal-does-not-name-the-highest',
      `${describeToken(token)}: named ${shown(named)}, the highest is ${shown(highest)}`,
    )
  }
  const held = () => world.applied(partition)
  return {
    report,
    nextNumber,
    held,
    checkLate: note,
    async seals(owner: FenceOwner, token: Token) {
      const outcome = await seal(owner, token)
      if (outcome?.ok === false) report('current-owner-refused', `seal of ${describeToken(token)}`)
    },
    async refusedSeal(
      owner: FenceOwner,
      token: Token,
      highest: Sealed,
      violation: FenceViolationName,
    ) {
      const outcome = await seal(owner, token)
      if (outcome?.ok === true) report(violation, `seal of ${describeToken(token)}`)
      else if (outcome?.ok === false) names(token, outcome.highest, highest)
    },
    async acceptedWrite(owner: FenceOwner, token: Token) {
      const outcome = await write(owner, token)
      if (outcome.type !== 'refused') return
      const detail = `effect of ${describeToken(token)}: ${outcome.reason}`
      report('current-owner-refused', detail)
    },
    async refusedWrite(
      owner: FenceOwner,
      token: Token,
      reason: 'stale' | 'unsealed',
      highest: Sealed | null,
      violation: FenceViolationName,
    ) {
      const outcome = await write(owner, token)
      if (outcome.type === 'accepted') report(violation, `effect of ${describeToken(token)}`)
      if (outcome.type !== 'refused') return
      names(token, outcome.highest, highest)
      if (outcome.reason === reason) return
      const detail = `${describeToken(token)} is called ${outcome.reason}, and is ${reason}`
      report('refusal-does-not-name-the-highest', detail)
    },
    async checkHeld() {
      const effects = await held()
      checkOrder(effects, report)
      const numbers = new Map<number, number>()
      for (const { number } of effects) numbers.set(number, (numbers.get(number) ?? 0) + 1)
      for (const number of accepted) {
        if (numbers.get(number) === 1) continue
        report(
          'accepted-effect-missing',
          `effect ${number} is held ${numbers.get(number) ?? 0} times`,
        )
      }
      for (const number of refused) {
        if (numbers.has(number)) report('refused-effect-applied', `effect ${number}`)
      }
    },
  }
}

/** S3 over what the resource holds, in the order in which it accepted it. */
function checkOrder(effects: readonly AppliedEffect[], report: Report): void {
  for (const [index, effect] of effects.entries()) {
    const before = effects[index - 1]
    if (before === undefined) continue
    const order = comparePositions(effect, before)
    if (order < 0) report('accepted-tokens-decreased', `${shown(before)}, then ${shown(effect)}`)
    if (order === 0 && effect.session !== before.session) {
      report('one-token-two-writers', `${shown(before)}, then ${shown(effect)}`)
    }
  }
}

function shown(sealed: (Omit<Sealed, 'session'> & { session: string }) | null): string {
  if (sealed === null) return 'nothing'
  return `${sealed.incarnation}.${sealed.generation} of ${sealed.session}`
}
