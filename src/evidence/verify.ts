/**
 * Proves or disproves S1, S2, S3, S10 and S11 for one run, from two logs that no worker writes: what the
 * resources accepted, and what etcd granted. Pure, so that planted violations can be tested.
 *
 *   violated      at least one violation is named, whatever else is missing
 *   inconclusive  none is, but the history has a gap, or a log holds nothing
 *   proved        neither: the promises that were checked held in this run
 *
 * S11 is checked only with a list of acknowledged inputs. Not promised: anything about effects that go
 * around the fence, and so are in no log.
 */
import { type AcceptLine, type EffectLine, isAccepted } from './accept-log.ts'
import type { Gap, PromiseName, Violation } from './findings.ts'
import { PROMISES } from './findings.ts'
import { grantId, grantsOf, type HistoryLog } from './history-log.ts'
import { ownerlessTimes } from './ownerless.ts'
import { verifyAccepts } from './verify-accepts.ts'
import { verifyGrants } from './verify-grants.ts'
import { effectsByToken, verifyHandOvers } from './verify-hand-overs.ts'
import { verifyInputs } from './verify-inputs.ts'

export type RunEvidence = {
  readonly accepts: readonly AcceptLine[]
  readonly history: HistoryLog
  /** Ids of acknowledged inputs; null: unknown. */
  readonly inputs: readonly string[] | null
}

export type Verdict = 'proved' | 'violated' | 'inconclusive'

export type Verification = {
  readonly verdict: Verdict
  readonly promises: Readonly<Record<PromiseName, Verdict | 'not-checked'>>
  readonly violations: readonly Violation[]
  /** Why nothing can be concluded; empty: the evidence is whole. */
  readonly gaps: readonly Gap[]
  readonly grants: number
  readonly accepted: number
  readonly refused: number
  /** Null: the history has no times on the accept log's clock. */
  readonly ownerlessMs: readonly number[] | null
  /** Of effects under successive tokens, drained or not. */
  readonly overlapMs: readonly number[]
  /** Over drained hand-overs, summed. */
  readonly drainedOverlapMs: number
}

export function verifyRun({ accepts, history, inputs }: RunEvidence): Verification {
  const effects = accepts.filter((line): line is EffectLine => line.type === 'effect')
  const grants = grantsOf(history.events)
  const ofGrants = verifyGrants(history)
  const gapped = new Set(ofGrants.gaps.map(({ partition }) => partition))
  const known = new Set(grants.map(({ partition }) => partition))
  const ofAccepts = verifyAccepts(
    accepts,
    new Set(grants.map(grantId)),
    // A partition without any grant is rather missing from the history than granted by nobody.
    (partition) => gapped.has(partition) || gapped.has(null) || !known.has(partition),
  )
  const ofHandOvers = verifyHandOvers(grants, effectsByToken(effects), history.timed)
  const violations = [
    ...ofGrants.violations,
    ...ofAccepts.violations,
    ...ofHandOvers.violations,
    ...(inputs === null ? [] : verifyInputs(inputs, effects)),
  ]
  const accepted = accepts.filter(isAccepted).length
  const gaps = [...ofGrants.gaps, ...ofAccepts.gaps, ...emptiness(grants.length, accepted)]
  return {
    verdict: verdictOf(violations, gaps),
    promises: Object.fromEntries(
      PROMISES.map((promise) => {
        if (promise === 'S11' && inputs === null) return [promise, 'not-checked']
        const broken = violations.filter((violation) => violation.promise === promise)
        // Whether inputs have effects does not hang on the history of grants.
        return [promise, verdictOf(broken, promise === 'S11' ? [] : gaps)]
      }),
    ) as Verification['promises'],
    violations,
    gaps,
    grants: grants.length,
    accepted,
    refused: accepts.length - accepted,
    ownerlessMs: history.timed ? ownerlessTimes(history.events) : null,
    overlapMs: ofHandOvers.overlapMs,
    drainedOverlapMs: ofHandOvers.drainedOverlapMs,
  }
}

function verdictOf(violations: readonly Violation[], gaps: readonly Gap[]): Verdict {
  if (violations.length > 0) return 'violated'
  return gaps.length > 0 ? 'inconclusive' : 'proved'
}

/** What never happened proves nothing. */
function emptiness(grants: number, accepted: number): readonly Gap[] {
  const gaps: Gap[] = []
  if (grants === 0) gaps.push({ partition: null, detail: 'the history has no grant' })
  if (accepted === 0) gaps.push({ partition: null, detail: 'the accept log has nothing accepted' })
  return gaps
}
