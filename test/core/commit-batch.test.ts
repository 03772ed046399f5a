/**
 * Plan: batches of commits as transactions: what is hoisted, what stays nested, and what each reply means.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Commit, Requirement } from '../../src/core/commit.ts'
import { elect, handOver, vacate } from '../../src/core/commit.ts'
import { COMMITS_PER_BATCH_MAX, commitBatch, commitOutcomes } from '../../src/core/commit-batch.ts'
import { groupName } from '../../src/core/ids.ts'
import { groupKeys } from '../../src/core/keys.ts'
import type { KeyValue, OperationResult, Transaction } from '../../src/core/transaction.ts'
import { TRANSACTION_OPERATIONS_MAX } from '../../src/core/transaction.ts'
import { B, C, CONTEXT, ME, owned, revoking, vacant } from './ownership-cases.ts'

const { stamp } = CONTEXT
const KEYS = groupKeys('/tenure/v1/', groupName('g'))
const PREFIX = '/tenure/v1/g/'

function entry(key: string, value: string, session: KeyValue['session'] = null): KeyValue {
  return { key, value, createRevision: 1, modRevision: 2, session }
}

test('batch of one, hoists all but what names the partition', () => {
  const commit = elect(7, owned(), B, 1, stamp)
  const record = `${PREFIX}partitions/000007`
  assert.deepEqual(commitBatch(KEYS, [commit]).transaction, {
    compare: [
      { type: 'lease-differs', key: `${PREFIX}members/a`, session: ME.session },
      { type: 'lease-equals', key: `${PREFIX}members/b`, session: B.session },
      { type: 'value-equals', key: `${PREFIX}incarnation`, value: '1' },
      { type: 'absent', key: `${PREFIX}cordons/b` },
      { type: 'absent', key: `${PREFIX}disabled/all` },
    ],
    success: [
      {
        type: 'transaction',
        compare: [
          { type: 'value-equals', key: record, value: owned().raw },
          { type: 'absent', key: `${PREFIX}disabled/000007` },
        ],
        success: [{ type: 'put', key: record, value: commit.value }],
        failure: [{ type: 'get', key: record }],
      },
    ],
    failure: [
      { type: 'get', key: `${PREFIX}members/a` },
      { type: 'get', key: `${PREFIX}members/b` },
      { type: 'get', key: `${PREFIX}incarnation` },
      { type: 'get', key: `${PREFIX}cordons/b` },
      { type: 'get', key: `${PREFIX}disabled/all` },
    ],
  } satisfies Transaction)
})

/** The keys that the nested transaction of a commit compares. */
function nestedKeys(transaction: Transaction, index: number): readonly string[] {
  const inner = transaction.success[index]
  if (inner?.type !== 'transaction') throw new Error('nested transaction expected')
  return inner.compare.map(({ key }) => key.slice(PREFIX.length))
}

test('batch, hoists only what every commit requires', () => {
  const commits = [
    handOver(1, revoking(B), B, 1, stamp),
    handOver(2, revoking(C), C, 1, stamp),
    elect(3, null, B, 1, stamp),
  ]
  const { transaction, shared } = commitBatch(KEYS, commits)
  assert.deepEqual(shared, [
    { type: 'incarnation', incarnation: 1 },
    { type: 'group-enabled' },
  ] satisfies Requirement[])
  assert.deepEqual(nestedKeys(transaction, 0), [
    'partitions/000001',
    'members/b',
    'cordons/b',
    'disabled/000001',
  ])
  assert.deepEqual(nestedKeys(transaction, 1), [
    'partitions/000002',
    'members/c',
    'cordons/c',
    'disabled/000002',
  ])
  assert.deepEqual(
    transaction.success[2]?.type === 'transaction' && transaction.success[2].compare[0],
    {
      type: 'absent',
      key: `${PREFIX}partitions/000003`,
    },
  )
})

test('batch with a commit that requires nothing, hoists nothing', () => {
  const commits = [vacate(1, revoking(B), stamp), handOver(2, revoking(B), B, 1, stamp)]
  const { transaction } = commitBatch(KEYS, commits)
  assert.deepEqual(transaction.compare, [])
  assert.deepEqual(nestedKeys(transaction, 0), ['partitions/000001'])
})

test('batch, as large as allowed, stays within what etcd counts', () => {
  const commits: Commit[] = []
  for (let partition = 0; partition < COMMITS_PER_BATCH_MAX; partition += 1) {
    const candidate = partition % 2 === 0 ? B : C
    commits.push(elect(partition, partition === 0 ? null : owned(), candidate, 1, stamp))
  }
  const { transaction } = commitBatch(KEYS, commits)
  const sizes = transaction.success.map((inner) =>
    inner.type === 'transaction' ? Math.max(inner.compare.length, inner.success.length) : 0,
  )
  assert.ok(transaction.success.length + Math.max(...sizes) <= TRANSACTION_OPERATIONS_MAX)
})

const TWO = commitBatch(KEYS, [elect(1, null, B, 1, stamp), elect(2, vacant(), B, 1, stamp)])

test('outcomes, batch carried out, tell each commit what became of it', () => {
  const stands = entry(KEYS.partition(2), owned().raw)
  const results: OperationResult[] = [
    { type: 'transaction', succeeded: true, results: [{ type: 'put' }] },
    { type: 'transaction', succeeded: false, results: [{ type: 'get', found: stands }] },
  ]
  assert.deepEqual(commitOutcomes(KEYS, TWO, { succeeded: true, results }), [
    { type: 'done' },
    { type: 'refused', stands },
  ])
})

test('outcomes, record gone, tell that nothing stands', () => {
  const results: OperationResult[] = [
    { type: 'transaction', succeeded: false, results: [{ type: 'get', found: null }] },
    { type: 'transaction', succeeded: true, results: [{ type: 'put' }] },
  ]
  assert.deepEqual(commitOutcomes(KEYS, TWO, { succeeded: true, results }), [
    { type: 'refused', stands: null },
    { type: 'done' },
  ])
})

/** What the failed batch read, in the order of its requirements. */
function refusedWith(found: Partial<Record<Requirement['type'], KeyValue | null>>) {
  const sound: Partial<Record<Requirement['type'], KeyValue>> = {
    'session-alive': entry(KEYS.member(B.member), '', B.session),
    incarnation: entry(KEYS.incarnation, '1'),
  }
  const results = TWO.shared.map(({ type }): OperationResult => {
    const read = type in found ? found[type] : sound[type]
    return { type: 'get', found: read ?? null }
  })
  return commitOutcomes(KEYS, TWO, { succeeded: false, results })
}

test('outcomes, shared requirement failed, name it for every commit', () => {
  const mark = entry('mark', '{}')
  const cases: readonly [Requirement, KeyValue | null][] = [
    [{ type: 'session-alive', ...B }, null],
    [{ type: 'session-alive', ...B }, entry('member', '', C.session)],
    [{ type: 'incarnation', incarnation: 1 }, entry(KEYS.incarnation, '2')],
    [{ type: 'incarnation', incarnation: 1 }, null],
    [{ type: 'not-cordoned', member: B.member }, mark],
    [{ type: 'group-enabled' }, mark],
  ]
  for (const [requirement, found] of cases) {
    const outcome = { type: 'refused-all', failed: [requirement] }
    assert.deepEqual(refusedWith({ [requirement.type]: found }), [outcome, outcome])
  }
})

test('outcomes, several shared requirements failed, name them all', () => {
  const [outcome] = refusedWith({ 'session-alive': null, incarnation: null })
  assert.deepEqual(outcome, {
    type: 'refused-all',
    failed: [
      { type: 'session-alive', ...B },
      { type: 'incarnation', incarnation: 1 },
    ],
  })
})

test('outcomes, former owner still alive, name it', () => {
  const batch = commitBatch(KEYS, [elect(1, owned(), B, 1, stamp)])
  const results = batch.shared.map(({ type }): OperationResult => {
    const found: Partial<Record<Requirement['type'], KeyValue>> = {
      'session-gone': entry(KEYS.member(ME.member), '', ME.session),
      'session-alive': entry(KEYS.member(B.member), '', B.session),
      incarnation: entry(KEYS.incarnation, '1'),
    }
    return { type: 'get', found: found[type] ?? null }
  })
  assert.deepEqual(commitOutcomes(KEYS, batch, { succeeded: false, results }), [
    { type: 'refused-all', failed: [{ type: 'session-gone', ...ME }] },
  ])
})
