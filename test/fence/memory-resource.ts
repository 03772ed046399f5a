/**
 * A protected resource in memory, right, or broken in one named way: what the conformance suite must tell
 * apart. Its effect is code of the worker, as a transaction's is, so an owner can be stopped inside it.
 */
import { decideEffect, decideSeal, type Sealed } from '../../src/core/fence.ts'
import type { PartitionId } from '../../src/core/ids.ts'
import { BEFORE_ANY_GRANT, comparePositions, type Token } from '../../src/core/token.ts'
import type { EffectOutcome, Fence, SealOutcome } from '../../src/fence/fence.ts'
import { type AppliedEffect, type FenceResource, ownerInProcess } from '../../src/testing/index.ts'

export type Break =
  | 'check-outside-transaction'
  | 'equal-generation-accepted'
  | 'lost-on-restart'
  | 'no-seal'

type Row = {
  highest: Sealed | null
  readonly effects: AppliedEffect[]
  queue: Promise<unknown>
  effectRuns: boolean
  sealsAsked: number
}

/** An effect gives what is to be appended when it is done. */
type MemoryEffect = () => Promise<AppliedEffect>

export function createMemoryResource(broken: Break | null): FenceResource {
  const rows = new Map<PartitionId, Row>()
  const rowOf = (partition: PartitionId): Row => {
    const known = rows.get(partition)
    if (known !== undefined) return known
    const row = {
      ...{ highest: null, effects: [], queue: Promise.resolve() },
      ...{ effectRuns: false, sealsAsked: 0 },
    }
    rows.set(partition, row)
    return row
  }
  return {
    async owner() {
      return ownerInProcess({
        fence: createFence(rowOf, broken),
        effectOf:
          ({ incarnation, generation, session }, number, step): MemoryEffect =>
          async () => {
            await step('checked')
            await step('written')
            return { incarnation, generation, session, number }
          },
      })
    },
    applied: async (partition) => [...rowOf(partition).effects],
    async sealWaits(partition) {
      const { effectRuns, sealsAsked } = rowOf(partition)
      return effectRuns && sealsAsked > 0
    },
    async restart() {
      if (broken !== 'lost-on-restart') return
      for (const row of rows.values()) row.highest = null
    },
  }
}

function createFence(
  rowOf: (partition: PartitionId) => Row,
  broken: Break | null,
): Fence<MemoryEffect, void> {
  const seen = (highest: Sealed | null, token: Token): Sealed | null => {
    const another = broken === 'equal-generation-accepted' && highest !== null
    return another && comparePositions(highest, token) === 0
      ? { ...highest, session: token.session }
      : highest
  }
  return {
    async seal(token) {
      if (broken === 'no-seal') return { ok: true }
      const asked = rowOf(token.partition)
      asked.sealsAsked += 1
      return inTurn(asked, async (row): Promise<SealOutcome> => {
        row.sealsAsked -= 1
        const highest = seen(row.highest, token)
        if (highest !== null && decideSeal(highest, token) === 'refuse') {
          return { ok: false, reason: 'stale', highest }
        }
        row.highest = { ...token }
        return { ok: true }
      })
    },
    async guard(token, effect): Promise<EffectOutcome<void>> {
      const row = rowOf(token.partition)
      const check = (): EffectOutcome<void> => {
        if (broken === 'no-seal') return raiseByWrite(row, token)
        const decision = decideEffect(seen(row.highest, token), token)
        if (decision === 'accept') return { ok: true, value: undefined }
        return { ok: false, reason: decision, highest: row.highest }
      }
      if (broken === 'check-outside-transaction') {
        const checked = await inTurn(row, async () => check())
        if (checked.ok) row.effects.push(await effect())
        return checked
      }
      return inTurn(row, async () => {
        const checked = check()
        if (!checked.ok) return checked
        row.effectRuns = true
        row.effects.push(await effect())
        row.effectRuns = false
        return checked
      })
    },
  }
}

/** What a resource without `seal` does: the first write of a new owner raises the mark. */
function raiseByWrite(row: Row, token: Token): EffectOutcome<void> {
  if (comparePositions(token, row.highest ?? BEFORE_ANY_GRANT) < 0) {
    return { ok: false, reason: 'stale', highest: row.highest }
  }
  row.highest = { ...token }
  return { ok: true, value: undefined }
}

/** One after the other per partition, as a locked row makes it. */
function inTurn<T>(row: Row, work: (row: Row) => Promise<T>): Promise<T> {
  const turn = row.queue.then(() => work(row))
  row.queue = turn.catch(() => {})
  return turn
}
