/**
 * Many commits in one etcd transaction: one nested compare-and-set each, so that a lost race fails
 * nobody else. What all of them require (my session, the incarnation, …) is compared once, outside;
 * when that fails the whole batch failed for a common reason, and the reply says which.
 *
 *   outer   compare: shared requirements      success: nested × n        failure: get each shared key
 *   nested  compare: record, own requirements success: put the record    failure: get the record
 */
import type { Commit, Requirement } from './commit.ts'
import type { GroupKeys } from './keys.ts'
import { createTenureError } from './tenure-error.ts'
import type { Compare, KeyValue, Operation, Transaction, TransactionResult } from './transaction.ts'
import { TRANSACTION_OPERATIONS_MAX } from './transaction.ts'

/** etcd counts the outer operations plus the largest nested list. */
export const COMMITS_PER_BATCH_MAX = TRANSACTION_OPERATIONS_MAX - 8

export type CommitOutcome =
  | { readonly type: 'done' }
  /** A compare failed; `stands` is the record as the transaction saw it (null: absent). */
  | { readonly type: 'refused'; readonly stands: KeyValue | null }
  /** A requirement shared by the whole batch failed; the record itself was not looked at. */
  | { readonly type: 'refused-all'; readonly failed: readonly Requirement[] }

export type CommitBatch = {
  readonly commits: readonly Commit[]
  readonly shared: readonly Requirement[]
  readonly transaction: Transaction
}

/** @param commits 1 to {@link COMMITS_PER_BATCH_MAX}, each of another partition. */
export function commitBatch(keys: GroupKeys, commits: readonly Commit[]): CommitBatch {
  const shared = sharedRequirements(commits)
  return {
    commits,
    shared,
    transaction: {
      compare: shared.map((requirement) => compareOf(keys, requirement, -1)),
      success: commits.map((commit) => nested(keys, commit, shared)),
      failure: shared.map((requirement) => ({
        type: 'get',
        key: keyOf(keys, requirement, -1),
      })),
    },
  }
}

/** One outcome per commit, in the order of `batch.commits`. */
export function commitOutcomes(
  keys: GroupKeys,
  batch: CommitBatch,
  result: TransactionResult,
): readonly CommitOutcome[] {
  if (!result.succeeded) {
    const failed = batch.shared.filter((requirement, index) => {
      const got = result.results[index]
      return got?.type === 'get' && !holds(keys, requirement, got.found)
    })
    return batch.commits.map(() => ({ type: 'refused-all', failed }))
  }
  return result.results.map((inner) => {
    if (inner.type !== 'transaction') {
      throw createTenureError('invariant-broken', 'a nested transaction has no such reply')
    }
    if (inner.succeeded) return { type: 'done' }
    const got = inner.results[0]
    return { type: 'refused', stands: got?.type === 'get' ? got.found : null }
  })
}

function nested(keys: GroupKeys, commit: Commit, shared: readonly Requirement[]): Operation {
  const key = keys.partition(commit.partition)
  const record: Compare =
    commit.expected === null
      ? { type: 'absent', key }
      : { type: 'value-equals', key, value: commit.expected }
  const own = commit.requires.filter((requirement) => !isAmong(shared, requirement))
  return {
    type: 'transaction',
    compare: [record, ...own.map((requirement) => compareOf(keys, requirement, commit.partition))],
    success: [{ type: 'put', key, value: commit.value }],
    failure: [{ type: 'get', key }],
  }
}

/** Requirements that every commit has and that do not depend on the partition. */
function sharedRequirements(commits: readonly Commit[]): readonly Requirement[] {
  const [first, ...rest] = commits
  if (first === undefined) return []
  return first.requires.filter((requirement) => {
    if (requirement.type === 'partition-enabled') return false
    return rest.every((commit) => isAmong(commit.requires, requirement))
  })
}

function isAmong(requires: readonly Requirement[], one: Requirement): boolean {
  return requires.some((other) => isSame(other, one))
}

/** Compared field by field: this runs for each pair of commits of a batch. */
function isSame(a: Requirement, b: Requirement): boolean {
  switch (a.type) {
    case 'session-alive':
    case 'session-gone':
      return a.type === b.type && a.session === b.session && a.member === b.member
    case 'rebalancer':
      return a.type === b.type && a.session === b.session
    case 'incarnation':
      return a.type === b.type && a.incarnation === b.incarnation
    case 'not-cordoned':
      return a.type === b.type && a.member === b.member
    case 'group-enabled':
    case 'partition-enabled':
      return a.type === b.type
    default:
      return a satisfies never
  }
}

function keyOf(keys: GroupKeys, requirement: Requirement, partition: number): string {
  return compareOf(keys, requirement, partition).key
}

function compareOf(keys: GroupKeys, requirement: Requirement, partition: number): Compare {
  switch (requirement.type) {
    case 'session-alive': {
      const { member, session } = requirement
      return { type: 'lease-equals', key: keys.member(member), session }
    }
    case 'session-gone': {
      const { member, session } = requirement
      return { type: 'lease-differs', key: keys.member(member), session }
    }
    case 'rebalancer':
      return {
        type: 'lease-equals',
        key: keys.rebalancer,
        session: requirement.session,
      }
    case 'incarnation':
      return {
        type: 'value-equals',
        key: keys.incarnation,
        value: String(requirement.incarnation),
      }
    case 'not-cordoned':
      return { type: 'absent', key: keys.cordon(requirement.member) }
    case 'group-enabled':
      return { type: 'absent', key: keys.disabledGroup }
    case 'partition-enabled':
      return { type: 'absent', key: keys.disabledPartition(partition) }
    default:
      return requirement satisfies never
  }
}

/** Whether a requirement holds of the key as the failed transaction read it. */
function holds(keys: GroupKeys, requirement: Requirement, found: KeyValue | null): boolean {
  const compare = compareOf(keys, requirement, -1)
  switch (compare.type) {
    case 'value-equals':
      return found?.value === compare.value
    case 'absent':
      return found === null
    case 'present':
      return found !== null
    case 'lease-equals':
      return found?.session === compare.session
    case 'lease-differs':
      return found?.session !== compare.session
    default:
      return compare satisfies never
  }
}
