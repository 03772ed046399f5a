/**
 * Why nobody owns a partition, or why it does not move, in one sentence for an operator. Read off the
 * group's state alone: it names what the state shows, and claims nothing of what a member does just now.
 */
import { assignableMembers } from './group-assignment.ts'
import type { GroupState } from './group-state.ts'
import type { MemberName, PartitionId } from './ids.ts'
import type { OperatorMark, RebalanceRecord } from './operator-records.ts'
import { isFinished } from './operator-records.ts'
import type { Owner, PartitionRecord } from './partition-record.ts'
import { haltedThrough, recordOwner } from './partition-record.ts'

/** Null when there is nothing to explain. */
export function explainPartition(state: GroupState, partition: PartitionId): string | null {
  const record = state.record(partition)?.record ?? null
  const disabled = state.disabledGroup ?? state.disabledPartitions.get(partition)
  if (record?.phase === 'halted') return explainHalted(state, record)
  const owner = state.liveOwner(partition)
  if (owner === null) return explainVacant(state, record, disabled)
  if (disabled !== undefined) return `disabled ${signed(disabled)}: ${owner.member} is giving it up`
  return record === null ? null : explainOwned(state, partition, record, owner)
}

function explainHalted(
  state: GroupState,
  record: PartitionRecord & { readonly phase: 'halted' },
): string {
  const { incarnation, reason } = record
  if (incarnation < (state.incarnation ?? 0)) {
    return `was halted under incarnation ${incarnation} (${reason}): it is granted anew`
  }
  return `halted (${reason}): raise the incarnation above ${haltedThrough(record)}`
}

function explainVacant(
  state: GroupState,
  record: PartitionRecord | null,
  disabled: OperatorMark | undefined,
): string {
  if (disabled !== undefined) return `disabled ${signed(disabled)}`
  const nobody = explainNobody(state)
  if (nobody !== null) return nobody
  if (record === null) return 'never owned: its first election follows the settle delay'
  const last = recordOwner(record)
  if (last === null) return 'being elected'
  const graceMs = state.config?.restartGraceMs ?? 0
  if (graceMs > 0 && !state.members.has(last.member)) {
    return `waits up to ${graceMs} ms for ${last.member} to come back (restart grace)`
  }
  return `the session of ${last.member} is gone: being elected`
}

/** Why no member at all would take a partition. */
function explainNobody(state: GroupState): string | null {
  if (state.members.size === 0) return 'no member is live'
  const eligible = assignableMembers(state)
  if (eligible.length === 0) {
    const live = [...state.members.keys()].sort().map((member) => hindrance(state, member))
    return `no member may receive partitions: ${live.slice(0, 5).join(', ')}`
  }
  const weighty = eligible.filter(({ weight }) => weight > 0)
  if (weighty.length === 0) return 'no member may receive partitions: all have weight 0'
  let capacity = 0
  for (const member of weighty) capacity += member.capacity ?? Number.POSITIVE_INFINITY
  if (capacity >= state.partitions) return null
  return `all members together take ${capacity} of ${state.partitions} partitions (capacity)`
}

function hindrance(state: GroupState, member: MemberName): string {
  if (state.cordons.has(member)) return `${member} is cordoned`
  if (state.evictions.has(member)) return `${member} is being evicted`
  return `${member} is leaving`
}

function explainOwned(
  state: GroupState,
  partition: PartitionId,
  record: PartitionRecord,
  owner: Owner,
): string | null {
  if (record.phase === 'revoking') return explainMove(state, record, owner)
  if (record.incarnation < (state.incarnation ?? 0)) {
    return `granted under incarnation ${record.incarnation}: ${owner.member} drains it and is granted anew`
  }
  const wanted = wantedBy(state, partition, owner)
  if (wanted === null) return null
  if (state.rebalancer === null) return `rebalance ${wanted.id} waits: no rebalancer is elected`
  const why = wanted.note === '' ? 'its turn has not come yet' : wanted.note
  return `rebalance ${wanted.id} is to move it: ${why}`
}

function explainMove(
  state: GroupState,
  record: PartitionRecord & { readonly phase: 'revoking' },
  owner: Owner,
): string {
  const { move } = record
  const since = `draining at ${owner.member} since ${new Date(move.atMs).toISOString()}`
  if (move.to === null) return `${since}, to be elected then`
  if (!state.members.has(move.to)) return `${since}; its target ${move.to} is gone`
  return `${since}, then granted to ${move.to}`
}

/** The operator's rebalance that names this partition or its owner, if it is not finished. */
function wantedBy(state: GroupState, partition: PartitionId, owner: Owner): RebalanceRecord | null {
  for (const record of state.rebalances.values()) {
    if (isFinished(record.state) || record.state === 'cancelling') continue
    const { kind } = record
    if (kind.type === 'move' && kind.partition === partition) return record
    if (kind.type === 'drain' && kind.member === owner.member) return record
  }
  return null
}

function signed(mark: OperatorMark): string {
  return mark.why === '' ? `by ${mark.by}` : `by ${mark.by} (${mark.why})`
}
