/** What a rebalance would move, for a dry run: bounded in size whatever P is. */
import type { MemberName } from '../core/ids.ts'
import type { RebalanceKind } from '../core/operator-records.ts'
import type { GroupView, PlannedMove } from '../ports/group-access.ts'
import { demandPartition } from './group-routes.ts'
import { createProblem } from './problem.ts'

/** Most moves that one dry run shows; it counts them all. */
export const DRY_RUN_MOVES_MAX = 10_000

export type DryRun = {
  readonly count: number
  readonly truncated: boolean
  readonly note: string
  readonly moves: readonly PlannedMove[]
}

/** @throws ProblemError `unknown-partition`, `unknown-member`. */
export function planFor(view: GroupView, kind: RebalanceKind): DryRun {
  switch (kind.type) {
    case 'balance': {
      const moves = view.plan()
      return dryRun(moves, moves.length === 0 ? 'balanced already' : '')
    }
    case 'move': {
      demandPartition(kind.partition, view.config().partitions)
      demandMember(view, kind.to)
      const from = view.partition(kind.partition).owner?.member ?? null
      if (from === kind.to) return dryRun([], `${from} owns it already`)
      return dryRun([{ partition: kind.partition, from, to: kind.to }], '')
    }
    case 'drain': {
      demandMember(view, kind.member)
      const moves: PlannedMove[] = []
      for (const { partition, owner } of view.partitions()) {
        if (owner?.member === kind.member) moves.push({ partition, from: owner.member, to: null })
      }
      return dryRun(moves, 'where each one goes is decided when the drain runs')
    }
    default:
      return kind satisfies never
  }
}

function dryRun(moves: readonly PlannedMove[], note: string): DryRun {
  const count = moves.length
  const truncated = count > DRY_RUN_MOVES_MAX
  return { count, truncated, note, moves: truncated ? moves.slice(0, DRY_RUN_MOVES_MAX) : moves }
}

function demandMember(view: GroupView, member: MemberName): void {
  if (view.members().some((each) => each.member === member)) return
  throw createProblem(
    'unknown-member',
    `no member "${member}" with a session: GET the group's members lists them`,
  )
}
