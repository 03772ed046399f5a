/**
 * Groups, marks and rebalances in words, for people.
 */
import type { Colors, Formatter } from 'picocolors/types.js'
import type { OperatorMark, RebalanceKind } from '../core/operator-records.ts'
import type { PartitionView } from '../ports/group-access.ts'
import type { Age, GroupReply } from './replies.ts'
import { describeDuration } from './setting-kinds.ts'

/** What state a group is in, worst first. */
type GroupState = 'degraded' | 'disabled' | 'rebalancing' | 'frozen' | 'stable'

function groupState(group: GroupReply): GroupState {
  if (group.stale || group.halted > 0 || group.alarms.length > 0) return 'degraded'
  if (group.disabled !== null) return 'disabled'
  if (group.vacant > 0) return 'degraded'
  if (group.moving > 0) return 'rebalancing'
  return group.frozen === null ? 'stable' : 'frozen'
}

export function describeGroup(group: GroupReply, colors: Colors): string {
  const state = groupState(group)
  const lines = [
    `${colors.bold(group.group)}  ${stateColour(state, colors)(state)}`,
    `  partitions   ${group.partitions}: ${group.owned} owned, ${group.vacant} vacant, ${group.moving} moving, ${group.halted} halted, ${group.notServing} not serving`,
    `  members      ${group.members}`,
    `  rebalancer   ${group.rebalancer ?? 'none: elections go on, nothing is moved'}`,
    `  incarnation  ${group.incarnation}`,
    `  map          ${describeAge(group)}`,
  ]
  if (group.frozen !== null) lines.push(`  ${describeMark('frozen', group.frozen)}`)
  if (group.disabled !== null) lines.push(`  ${describeMark('disabled', group.disabled)}`)
  return [...lines, ...group.alarms.map((alarm) => `  ${colors.red(`ALARM ${alarm}`)}`)].join('\n')
}

export function describeAge(age: Age): string {
  const old = `version ${age.version}, ${describeDuration(age.ageMs)} old`
  return age.stale ? `${old}: STALE, the store has not confirmed it` : old
}

/** `frozen by ann@host: deploy, until 2030-01-01T00:00:00.000Z`. */
export function describeMark(what: string, mark: OperatorMark): string {
  const why = mark.why === '' ? '' : `: ${mark.why}`
  const until = mark.untilMs === null ? '' : `, until ${new Date(mark.untilMs).toISOString()}`
  return `${what} by ${mark.by}${why}${until}`
}

export function describeKind(kind: RebalanceKind): string {
  switch (kind.type) {
    case 'balance':
      return 'balance'
    case 'move':
      return `move ${kind.partition} to ${kind.to}`
    case 'drain':
      return `drain ${kind.member}`
    default:
      return kind satisfies never
  }
}

export function phaseColour(phase: PartitionView['phase'], colors: Colors): Formatter {
  switch (phase) {
    case 'owned':
      return colors.green
    case 'revoking':
      return colors.yellow
    case 'vacant':
    case 'halted':
      return colors.red
    default:
      return phase satisfies never
  }
}

function stateColour(state: GroupState, colors: Colors): Formatter {
  if (state === 'stable') return colors.green
  return state === 'degraded' ? colors.red : colors.yellow
}
