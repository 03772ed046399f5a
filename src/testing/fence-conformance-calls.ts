/**
 * Calls to a fence with what each must answer, and in the end the list that the resource holds, compared
 * with what it answered. What differs is reported by name.
 */
import type { Sealed } from '../core/fence.ts'
import type { PartitionId } from '../core/ids.ts'
import { comparePositions, describeToken, isSameGrant, type Token } from '../core/token.ts'
import type { SealOutcome } from '../fence/fence.ts'
import type { FenceOwner, WriteOutcome } from './fence-conformance-owner.ts'

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
  /** A stopped owner that was not inside an effect keeps the new one from its seal or from its writes. */
  | 'new-owner-held-up'
  | 'call-failed'
  /** Not the fence's fault: the effect never announced a step that the resource says it has. */
  | 'step-not-reached'

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

export type Report = (name: FenceViolationName, detail: string) => void

export type AppliedEffects = (partition: PartitionId) => Promise<readonly AppliedEffect[]>

export type CheckedCalls = ReturnType<typeof createCheckedCalls>

/** @param firstNumber of this point's effects; each gets the next */
export function createCheckedCalls(
  applied: AppliedEffects,
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
  const names = (token: Token, named: Sealed | null, highest: Sealed | null) => {
    const same =
      named === null || highest === null ? named === highest : isSameGrant(named, highest)
    if (same) return
    report(
      'refusal-does-not-name-the-highest',
      `${describeToken(token)}: named ${shown(named)}, the highest is ${shown(highest)}`,
    )
  }
  const held = () => applied(partition)
  return {
    report,
    nextNumber,
    /** Notes what a write was answered that was not made here. */
    note,
    holds: async (number: number) => (await held()).some((effect) => effect.number === number),
    async seals(owner: FenceOwner, token: Token) {
      const outcome = await sealed(owner, token, report)
      if (outcome?.ok === false) report('current-owner-refused', `seal of ${describeToken(token)}`)
    },
    async refusedSeal(
      owner: FenceOwner,
      token: Token,
      highest: Sealed,
      violation: FenceViolationName,
    ) {
      const outcome = await sealed(owner, token, report)
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
      checkAnswers(effects, { accepted, refused }, report)
    },
  }
}

async function sealed(
  owner: FenceOwner,
  token: Token,
  report: Report,
): Promise<SealOutcome | null> {
  try {
    return await owner.seal(token)
  } catch (error) {
    report('call-failed', `seal: ${error instanceof Error ? error.message : String(error)}`)
    return null
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

function checkAnswers(
  effects: readonly AppliedEffect[],
  answers: { readonly accepted: ReadonlySet<number>; readonly refused: ReadonlySet<number> },
  report: Report,
): void {
  const times = new Map<number, number>()
  for (const { number } of effects) times.set(number, (times.get(number) ?? 0) + 1)
  for (const number of answers.accepted) {
    const count = times.get(number) ?? 0
    if (count !== 1) report('accepted-effect-missing', `effect ${number} is held ${count} times`)
  }
  for (const number of answers.refused) {
    if (times.has(number)) report('refused-effect-applied', `effect ${number}`)
  }
}

function shown(sealed: (Omit<Sealed, 'session'> & { session: string }) | null): string {
  if (sealed === null) return 'nothing'
  return `${sealed.incarnation}.${sealed.generation} of ${sealed.session}`
}
