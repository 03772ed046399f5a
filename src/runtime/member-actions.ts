/** Carries out what an ownership machine asked for: each action once, and one record of it. */
import type { ElectionSchedule } from '../core/election.ts'
import type { GroupName, MemberName, PartitionId } from '../core/ids.ts'
import type { Grant, OwnershipAction, Seat } from '../core/ownership-state.ts'
import type { Clock } from '../ports/clock.ts'
import type { SessionEndCause, Telemetry } from '../ports/telemetry.ts'
import type { Campaigns } from './campaigns.ts'
import type { GrantJournal } from './grant-journal.ts'
import type { MemberCommits } from './member-commits.ts'
import type { PartitionHost } from './partition-host.ts'

export type MemberParts = {
  readonly group: GroupName
  readonly member: MemberName
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly host: PartitionHost
  readonly elections: ElectionSchedule
  readonly campaigns: Campaigns
  readonly commits: MemberCommits
  readonly journal: GrantJournal
  begin(partition: PartitionId, grant: Grant): void
  /** Ends the session for good: an overdue drain under the policy `evict`. */
  endSession(): void
  /** Why the last session ended. */
  endCause(): SessionEndCause
}

/** `before` and `after`: the seat around the step that asked for the action. */
export function performAction(
  parts: MemberParts,
  partition: PartitionId,
  before: Seat,
  after: Seat,
  action: OwnershipAction,
): void {
  const { host, elections, commits, journal } = parts
  switch (action.type) {
    case 'commit':
      if (action.purpose === 'campaign') elections.began(partition)
      commits.send(action.commit)
      return
    case 'confirm':
      commits.confirm(partition, action.id)
      return
    case 'begin':
      parts.begin(partition, action.grant)
      return
    case 'open-gate':
      host.open(partition)
      if (before.now.status === 'serving') journal.note(partition, after, { type: 'reopened' })
      return
    case 'suspend-gate':
      host.suspend(partition)
      journal.note(partition, before, { type: 'suspected', why: action.why })
      return
    case 'drain':
      host.drain(partition, action.giveUp)
      return
    case 'lose': {
      const cause = action.why === 'session-ended' ? parts.endCause() : action.why
      journal.note(partition, before, { type: 'lost', cause })
      host.lose(partition, cause)
      return
    }
    case 'release':
      released(parts, partition, before, action)
      return
    case 'drain-overdue':
      drainOverdue(parts, partition, before, action)
      return
    case 'end-session':
      parts.endSession()
      return
    case 'campaign-ended':
      campaignEnded(parts, partition, action.outcome)
      return
    case 'fence-ahead': {
      const { incarnation, generation } = action.highest
      const detail = `partition ${partition} was granted up to ${incarnation}.${generation} before etcd was restored: "tenure incarnation raise"`
      journal.alarm('fence-ahead', detail)
      return
    }
    default:
      action satisfies never
  }
}

function released(
  { host, journal }: MemberParts,
  partition: PartitionId,
  before: Seat,
  { to, drainMs, handOffMs }: OwnershipAction & { readonly type: 'release' },
): void {
  journal.note(partition, before, { type: 'released', to, drainMs, handOffMs })
  if (before.now.status === 'handing-over') host.released(partition, before.now.grant)
}

function drainOverdue(
  { journal, member }: MemberParts,
  partition: PartitionId,
  before: Seat,
  { policy }: OwnershipAction & { readonly type: 'drain-overdue' },
): void {
  journal.note(partition, before, { type: 'drain-overdue', policy })
  const remedy = policy === 'wait' ? 'look at what its work waits for' : `policy ${policy}`
  journal.alarm('drain-overdue', `partition ${partition} at ${member}: drain overran, ${remedy}`)
}

function campaignEnded(
  { group, member, clock, telemetry, elections, campaigns }: MemberParts,
  partition: PartitionId,
  outcome: 'won' | 'refused' | 'unknown',
): void {
  elections.ended(partition, outcome === 'won', clock.monotonicMs())
  telemetry.record({ type: 'campaign-ended', group, member, partition, outcome })
  if (elections.isStale) campaigns.schedule(0)
}
