/**
 * The records that one partition goes through in the limit of planned moves, made by the same code as
 * Tenure's and known to all processes beforehand: operation ids follow from partition and step.
 *
 *   step 1 elected by its first owner, 2 revoked, 3 granted to the other, 4 revoked, 5 granted back, …
 *
 * The step is also the key's version in etcd, so a watcher knows it without reading the value.
 */
import type { Commit, Stamp, StoredRecord } from '../core/commit.ts'
import { elect, handOver, revoke } from '../core/commit.ts'
import { commitBatch } from '../core/commit-batch.ts'
import { operationId, type SessionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { Owner } from '../core/partition-record.ts'
import type { Compare, Operation } from '../core/transaction.ts'

export type ChainPlan = {
  readonly keys: GroupKeys
  readonly partitions: number
  readonly members: readonly Owner[]
  readonly planner: SessionId
}

const INCARNATION = 1
/** Of the usual length. */
const AT_MS = 1_700_000_000_000

/** Half of the members give all they have to the other half, which gives it back in the next wave. */
export function isMoving({ members }: ChainPlan, partition: number): boolean {
  return partition % members.length < members.length / 2
}

/** Index of the member that owns the partition at the step. */
export function ownerAt({ members }: ChainPlan, partition: number, step: number): number {
  const first = partition % members.length
  const moves = (step - 1) >> 1
  if (moves % 2 === 0) return first
  const half = members.length >> 1
  return half + (Math.floor(partition / members.length) % (members.length - half))
}

/** The commits of steps 1 to `steps`. */
export function chainOf(plan: ChainPlan, partition: number, steps: number): readonly Commit[] {
  const owner = (step: number): Owner => {
    const found = plan.members[ownerAt(plan, partition, step)]
    if (found === undefined) throw new Error('no such member')
    return found
  }
  const commits: Commit[] = [elect(partition, null, owner(1), INCARNATION, stamp(partition, 1))]
  for (let step = 2; step <= steps; step += 1) {
    const last = commits[step - 2] as Commit
    const stored = { record: last.next, raw: last.value } as StoredRecord
    commits.push(
      step % 2 === 0
        ? revoke(
            partition,
            stored as Parameters<typeof revoke>[1],
            {
              id: stamp(partition, step).operation,
              to: owner(step + 1).member,
              ...{ reason: 'balance', by: 'limit', rewrites: 0, atMs: AT_MS },
            },
            plan.planner,
            stamp(partition, step),
          )
        : handOver(partition, stored, owner(step), INCARNATION, stamp(partition, step)),
    )
  }
  return commits
}

/** Parts of transactions, to be put together in any number. */
export type Prepared = {
  readonly shared: readonly Compare[]
  readonly nested: readonly Operation[]
}

/** What all commits of one sender require stands outside, as in Tenure's own batches. */
export function prepareBatch(keys: GroupKeys, commits: readonly Commit[]): Prepared {
  const { transaction } = commitBatch(keys, commits)
  return { shared: transaction.compare, nested: transaction.success }
}

function stamp(partition: number, step: number): Stamp {
  const text = (partition * 1000 + step).toString(16).padStart(16, '0')
  return { operation: operationId(text), atMs: AT_MS }
}
