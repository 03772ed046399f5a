/**
 * Asking for a rebalance and taking it back. The id is the idempotency key: the same id with the same
 * request answers the record that stands, with another request it is a conflict. Records are bounded:
 * the rebalancer removes the oldest finished ones, and too many unfinished ones are refused here.
 */
import type { GroupState } from '../core/group-state.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { RebalanceKind, RebalanceRecord } from '../core/operator-records.ts'
import { decodeRebalance, encodeRebalance, isFinished } from '../core/operator-records.ts'
import type { By, Change, Refusal } from '../ports/group-access.ts'
import type { GroupChanges } from './group-changes.ts'

const UNFINISHED_MAX = 1000
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

type Request = {
  readonly keys: GroupKeys
  readonly state: GroupState
  readonly id: string
  readonly kind: RebalanceKind
  readonly by: By
  readonly wallMs: number
}

type Requested = { readonly record: RebalanceRecord; readonly created: boolean }

export async function requestChange(
  request: Request,
  changes: GroupChanges,
): Promise<Change<Requested>> {
  const { keys, id, kind, by, wallMs } = request
  if (!ID.test(id)) {
    return refuse('invalid-argument', 'id takes 1 to 128 letters, digits, ".", "_" or "-"')
  }
  const record: RebalanceRecord = {
    ...{ id, kind, state: 'requested', reason: by.why, by: by.by },
    ...{ planned: null, moved: 0, requestedAtMs: wallMs, finishedAtMs: null, note: '' },
  }
  return changes.change<Requested>({
    key: keys.rebalance(id),
    decide: (stands) => {
      if (stands !== null) {
        return { type: 'answer', change: sameRequest(decodeRebalance(stands.value), record) }
      }
      const refusal = checkKind(request)
      if (refusal !== null) return { type: 'answer', change: refusal }
      return { type: 'put', value: encodeRebalance(record), result: { record, created: true } }
    },
  })
}

/** One that has not begun is cancelled at once; else the rebalancer turns its moves back first. */
export async function cancelChange(
  keys: GroupKeys,
  id: string,
  wallMs: number,
  changes: GroupChanges,
): Promise<Change<RebalanceRecord>> {
  if (!ID.test(id)) return unknownRebalance(id)
  return changes.change<RebalanceRecord>({
    key: keys.rebalance(id),
    decide: (stands) => {
      if (stands === null) return { type: 'answer', change: unknownRebalance(id) }
      const before = decodeRebalance(stands.value)
      if (before.state === 'cancelling' || before.state === 'cancelled') {
        return { type: 'answer', change: { ok: true, value: before } }
      }
      if (isFinished(before.state)) {
        const change = refuse('conflict', `rebalance ${id} is ${before.state} already`)
        return { type: 'answer', change }
      }
      // A drain may have put its cordon before it runs: the rebalancer takes that back.
      const isOver = before.state === 'requested' && before.kind.type !== 'drain'
      const after: RebalanceRecord = isOver
        ? { ...before, state: 'cancelled', finishedAtMs: wallMs }
        : { ...before, state: 'cancelling' }
      return { type: 'put', value: encodeRebalance(after), result: after }
    },
  })
}

function sameRequest(stands: RebalanceRecord, asked: RebalanceRecord): Change<Requested> {
  const body = ({ kind, by, reason }: RebalanceRecord) => JSON.stringify([kind, by, reason])
  if (body(stands) === body(asked)) return { ok: true, value: { record: stands, created: false } }
  return refuse('conflict', `id ${asked.id} was used for another request`)
}

function checkKind({ state, kind }: Request): Refusal | null {
  const unfinished = [...state.rebalances.values()].filter((each) => !isFinished(each.state))
  if (unfinished.length >= UNFINISHED_MAX) {
    return refuse('precondition-failed', `${UNFINISHED_MAX} rebalances are not finished yet`)
  }
  switch (kind.type) {
    case 'balance':
      return null
    case 'move': {
      const { partition, to } = kind
      if (!Number.isInteger(partition) || partition < 0 || partition >= state.partitions) {
        return refuse('unknown-partition', `partition ${partition} does not exist`)
      }
      if (!state.members.has(to)) return refuse('unknown-member', `member "${to}" is not live`)
      if (state.cordons.has(to)) return refuse('precondition-failed', `member "${to}" is cordoned`)
      return null
    }
    case 'drain': {
      const { member } = kind
      if (state.members.has(member)) return null
      return refuse('unknown-member', `member "${member}" is not live`)
    }
    default:
      return kind satisfies never
  }
}

function unknownRebalance(id: string): Refusal {
  return refuse('unknown-rebalance', `there is no rebalance "${id}"`)
}

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { ok: false, code, detail }
}
