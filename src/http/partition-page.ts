/**
 * Pages of partitions in the order of their numbers. The cursor is the number to go on from, so a page
 * costs what it shows (or skips, under a filter), not P, and no change of the map shifts the next page.
 */
import type { Static } from '@sinclair/typebox'
import type { GroupView, PartitionView } from '../ports/group-access.ts'
import type { partitionsQuery } from './request-schemas.ts'

export type PartitionPage = {
  readonly partitions: readonly PartitionView[]
  readonly nextCursor: string | null
}

export function pageOfPartitions(
  view: GroupView,
  query: Static<typeof partitionsQuery>,
): PartitionPage {
  const total = view.config().partitions
  const partitions: PartitionView[] = []
  for (let number = Number(query.cursor ?? 0); number < total; number++) {
    const partition = view.partition(number)
    if (!isWanted(partition, query)) continue
    // One more than the page holds shows that another page follows; it is not built again for nothing.
    if (partitions.length === query.limit) return { partitions, nextCursor: String(number) }
    partitions.push(partition)
  }
  return { partitions, nextCursor: null }
}

function isWanted(partition: PartitionView, query: Static<typeof partitionsQuery>): boolean {
  const { owner, state, moving } = query
  if (owner !== undefined && partition.owner?.member !== owner) return false
  if (state !== undefined && partition.phase !== state) return false
  return moving === undefined || (partition.move !== null) === moving
}
