/**
 * Plan: each arrow of a partition, with all that it requires (S4, S9) and the record that it writes.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { elect, force, halt, handOver, retarget, revoke, vacate } from '../../src/core/commit.ts'
import type { PendingMove } from '../../src/core/partition-record.ts'
import { decodePartitionRecord, encodePartitionRecord } from '../../src/core/partition-record.ts'
import { checkCommit } from '../../src/core/record-invariants.ts'
import {
  at,
  B,
  C,
  CONTEXT,
  grantRequirements,
  halted,
  ME,
  OPERATION,
  owned,
  PARTITION,
  REBORN,
  revoking,
  vacant,
} from './ownership-cases.ts'

const { stamp } = CONTEXT
const STAMPED = { operation: OPERATION, atMs: 9, unknown: null }
const PREVIOUS = { ...at(3), ...ME }
const ELECTION = { type: 'rebalancer', session: C.session } as const
const GONE = { type: 'session-gone', ...ME } as const

function granted(how: 'election' | 'hand-over' | 'forced', previous: object | null = PREVIOUS) {
  const owner = B
  return { phase: 'owned', incarnation: 1, generation: 4, owner, how, previous, ...STAMPED }
}

test('elect, never granted, requires that the record is absent and only my own session', () => {
  const commit = elect(PARTITION, null, B, 1, stamp)
  const next = { ...granted('election', null), generation: 1 }
  assert.deepEqual(commit, {
    partition: PARTITION,
    expected: null,
    next,
    value: JSON.stringify({ v: 1, ...next, unknown: undefined }),
    requires: grantRequirements(B),
  })
})

test('elect, record with an owner in any phase, requires that its session is gone', () => {
  for (const stored of [owned(), revoking(C), halted()]) {
    const commit = elect(PARTITION, stored, B, 2, stamp)
    assert.equal(commit.expected, stored.raw)
    assert.deepEqual(commit.requires, [GONE, ...grantRequirements(B, 2)])
    assert.deepEqual(commit.next, { ...granted('election'), incarnation: 2 })
    assert.deepEqual(checkCommit(stored.record, commit, 'member'), [])
  }
})

test('elect, vacant record, requires nobody to be gone and keeps its history', () => {
  const stored = vacant()
  const record = { ...stored.record, previous: PREVIOUS }
  const commit = elect(PARTITION, { record, raw: stored.raw }, B, 1, stamp)
  assert.deepEqual(commit.requires, grantRequirements(B))
  assert.deepEqual(commit.next, granted('election'))
})

test('hand over, requires that the grantee lives and nothing of the owner, who is the sender', () => {
  const commit = handOver(PARTITION, revoking(B), B, 1, stamp)
  assert.equal(commit.expected, revoking(B).raw)
  assert.deepEqual(commit.requires, grantRequirements(B))
  assert.deepEqual(commit.next, granted('hand-over'))
})

test('force, requires what entitles the sender, and that the grantee lives', () => {
  for (const by of [ELECTION, { type: 'session-alive', ...ME } as const]) {
    const commit = force(PARTITION, revoking(B), B, 1, by, stamp)
    assert.deepEqual(commit.requires, [by, ...grantRequirements(B)])
    assert.deepEqual(commit.next, granted('forced'))
  }
})

test('vacate, requires the record alone, or what entitles a rebalancer', () => {
  const next = { phase: 'vacant', ...at(3), previous: PREVIOUS, ...STAMPED }
  const own = vacate(PARTITION, revoking(B), stamp)
  assert.deepEqual([own.expected, own.requires, own.next], [revoking(B).raw, [], next])
  assert.deepEqual(vacate(PARTITION, revoking(B), stamp, [ELECTION]).requires, [ELECTION])
})

test('halt, requires that its owner lives, and grants nothing', () => {
  const commit = halt(PARTITION, revoking(B), ME, 'fence-ahead', stamp)
  assert.deepEqual(commit.requires, [{ type: 'session-alive', ...ME }])
  assert.deepEqual(commit.next, {
    phase: 'halted',
    ...at(3),
    owner: ME,
    reason: 'fence-ahead',
    previous: null,
    ...STAMPED,
  })
})

const MOVE: PendingMove = {
  id: 'move-1',
  to: B.member,
  reason: 'balance',
  by: 'rebalancer',
  rewrites: 0,
  atMs: 5,
}

test('revoke, requires the election alone, and changes neither owner nor position (S9)', () => {
  const stored = owned()
  assert.equal(stored.record.phase, 'owned')
  if (stored.record.phase !== 'owned') return
  const commit = revoke(PARTITION, { ...stored, record: stored.record }, MOVE, C.session, stamp)
  assert.deepEqual(commit.requires, [ELECTION])
  assert.deepEqual(commit.next, { ...stored.record, ...stamp, phase: 'revoking', move: MOVE })
})

test('retarget, requires the election alone, and rewrites only the target (S9)', () => {
  const stored = revoking(B)
  if (stored.record.phase !== 'revoking') throw new Error('revoking expected')
  const to = C.member
  const commit = retarget(PARTITION, { ...stored, record: stored.record }, to, C.session, stamp)
  assert.deepEqual(commit.requires, [ELECTION])
  assert.deepEqual(commit.next, {
    ...stored.record,
    ...stamp,
    move: { ...stored.record.move, to, rewrites: 1 },
  })
})

test('commits on a record as it was read back, write one that can be read back', () => {
  const stored = owned({ owner: REBORN })
  const record = decodePartitionRecord(stored.raw.replace('{', '{"later":[1],'), PARTITION)
  if (record.phase !== 'owned') throw new Error('owned expected')
  const from = { record, raw: encodePartitionRecord(record) }
  const revoked = revoke(PARTITION, from, MOVE, C.session, stamp)
  for (const commit of [
    revoked,
    handOver(PARTITION, from, B, 1, stamp),
    vacate(PARTITION, from, stamp),
    halt(PARTITION, from, REBORN, 'fence-ahead', stamp),
  ]) {
    const text = JSON.parse(commit.value)
    assert.equal(text.v, 1)
    assert.deepEqual(text.later, [1])
    assert.deepEqual(decodePartitionRecord(commit.value, PARTITION), commit.next)
  }
})
