/** Plan: the fold of lists and changes into one table: what it holds after, and what it says was touched. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeGroupConfig, newGroupConfig } from '../../src/core/group-config.ts'
import type { StateEvent } from '../../src/core/group-state.ts'
import { GroupState } from '../../src/core/group-state.ts'
import { groupName } from '../../src/core/ids.ts'
import { groupKeys } from '../../src/core/keys.ts'
import { encodeMemberRecord } from '../../src/core/member-record.ts'
import { encodeOperatorMark } from '../../src/core/operator-records.ts'
import type { Owner } from '../../src/core/partition-record.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import type { KeyValue } from '../../src/core/transaction.ts'
import { B, ME, owned, REBORN, revoking } from './ownership-cases.ts'

const KEYS = groupKeys('/tenure/v1/', groupName('g'))
const MARK = { by: 'op', why: 'test', atMs: 1, untilMs: null }
const MARK_TEXT = encodeOperatorMark(MARK)

function entry(key: string, value: string, modRevision: number, owner?: Owner): KeyValue {
  return { key, value, createRevision: 1, modRevision, session: owner?.session ?? null }
}
function put(key: string, value: string, modRevision: number, owner?: Owner): StateEvent {
  return { type: 'put', entry: entry(key, value, modRevision, owner) }
}
function gone(key: string, modRevision: number): StateEvent {
  return { type: 'delete', key, modRevision }
}
function memberText(owner: Owner): string {
  const { member, session } = owner
  const free = { address: '', weight: 1, capacity: null, zone: '', labels: {}, state: 'active' }
  return encodeMemberRecord({ ...free, member, session, state: 'active', versions: [1] })
}

const UNTOUCHED = {
  ...{ partitions: [], members: false, settings: false, receivers: false, plans: false },
}

test('group state, changes of records, tells each partition once and holds the newest', () => {
  const state = new GroupState(KEYS)
  const change = state.apply(
    [
      put(KEYS.partition(3), owned().raw, 5),
      put(KEYS.partition(4), owned().raw, 6),
      put(KEYS.partition(3), revoking(B).raw, 7),
    ],
    7,
  )
  assert.deepEqual(change, { ...UNTOUCHED, partitions: [3, 4] })
  assert.deepEqual(state.record(3), revoking(B))
  assert.deepEqual(state.record(4), owned())
  assert.equal(state.record(5), null)
  assert.equal(state.revision, 7)
  assert.deepEqual(state.summary(), { count: 2, newestModRevision: 7 })
})

test('group state, old news of a key, is skipped and touches nothing', () => {
  const state = new GroupState(KEYS)
  const key = KEYS.partition(3)
  state.apply([put(key, revoking(B).raw, 7)], 7)
  const old = [put(key, owned().raw, 5), put(key, owned().raw, 7), gone(key, 6)]
  assert.deepEqual(state.apply(old, 6), UNTOUCHED)
  assert.deepEqual(state.record(3), revoking(B))
  assert.equal(state.revision, 7)
  assert.equal(state.modRevision(key), 7)
})

test('group state, member whose key is deleted, is no longer alive', () => {
  const state = new GroupState(KEYS)
  const key = KEYS.member(ME.member)
  const joined = state.apply([put(key, memberText(ME), 5, ME)], 5)
  assert.deepEqual(joined, { ...UNTOUCHED, members: true })
  state.apply([put(KEYS.partition(3), owned().raw, 6)], 6)
  assert.deepEqual([state.isLive(ME), state.liveOwner(3)], [true, ME])
  assert.deepEqual(state.apply([gone(key, 7)], 7), { ...UNTOUCHED, members: true })
  assert.deepEqual([state.isLive(ME), state.liveOwner(3)], [false, null])
  assert.equal(state.modRevision(key), 0)
})

test('group state, member with another session than the owner, is not that owner', () => {
  const state = new GroupState(KEYS)
  state.apply(
    [
      put(KEYS.partition(3), owned().raw, 5),
      put(KEYS.member(ME.member), memberText(REBORN), 6, REBORN),
    ],
    6,
  )
  assert.deepEqual([state.isLive(ME), state.isLive(REBORN)], [false, true])
  assert.equal(state.liveOwner(3), null)
})

test('group state, member key under no lease, is no live member, whatever its value says', () => {
  const state = new GroupState(KEYS)
  state.apply([put(KEYS.member(ME.member), memberText(ME), 5)], 5)
  assert.equal(state.members.size, 0)
  state.apply([put(KEYS.member(ME.member), memberText(ME), 6, REBORN)], 6)
  assert.equal(state.members.get(ME.member)?.session, REBORN.session)
})

test('group state, settings and marks, come and go', () => {
  const state = new GroupState(KEYS)
  const config = newGroupConfig({ partitions: 8 })
  const marks = [
    KEYS.freeze,
    KEYS.disabledGroup,
    KEYS.disabledPartition(2),
    KEYS.cordon(B.member),
    KEYS.eviction(ME.member),
  ]
  const change = state.apply(
    [
      put(KEYS.config, encodeGroupConfig(config), 2),
      put(KEYS.incarnation, '1700000000', 3),
      put(KEYS.rebalancer, 'r', 4, B),
      ...marks.map((key, index) => put(key, MARK_TEXT, 5 + index)),
    ],
    9,
  )
  assert.deepEqual(change, { ...UNTOUCHED, settings: true, receivers: true, plans: true })
  assert.deepEqual([state.config, state.partitions, state.incarnation], [config, 8, 1_700_000_000])
  assert.deepEqual(state.rebalancer, { session: B.session, value: 'r' })
  assert.deepEqual([state.freeze, state.disabledGroup], [MARK, MARK])
  assert.deepEqual([...state.cordons], [[B.member, MARK]])
  assert.deepEqual([...state.evictions], [[ME.member, MARK]])
  assert.deepEqual([...state.disabledPartitions], [[2, MARK]])
  assert.equal(state.isDisabled(3), true)

  const all = [KEYS.config, KEYS.incarnation, KEYS.rebalancer, ...marks]
  state.apply(
    all.map((key, index) => gone(key, 20 + index)),
    30,
  )
  assert.deepEqual([state.config, state.partitions, state.incarnation], [null, 0, null])
  assert.deepEqual([state.rebalancer, state.freeze, state.disabledGroup], [null, null, null])
  assert.deepEqual([state.cordons.size, state.evictions.size, state.isDisabled(2)], [0, 0, false])
  assert.deepEqual(state.summary(), { count: 0, newestModRevision: 0 })
})

test('group state, replaced by a list, forgets what is not in it and tells what changed', () => {
  const state = new GroupState(KEYS)
  state.apply(
    [
      put(KEYS.partition(1), owned().raw, 5),
      put(KEYS.partition(2), owned().raw, 6),
      put(KEYS.partition(3), owned().raw, 7),
      put(KEYS.member(ME.member), memberText(ME), 8, ME),
    ],
    8,
  )
  const change = state.replace(
    [entry(KEYS.partition(1), owned().raw, 5), entry(KEYS.partition(2), revoking(B).raw, 9)],
    12,
  )
  assert.deepEqual(change, { ...UNTOUCHED, partitions: [3, 2], members: true })
  assert.deepEqual(
    [state.record(1), state.record(2), state.record(3)],
    [owned(), revoking(B), null],
  )
  assert.equal(state.members.size, 0)
  assert.equal(state.revision, 12)
})

test('group state, replaced by a restored list, takes another value under the same revision', () => {
  const state = new GroupState(KEYS)
  state.apply([put(KEYS.partition(1), owned().raw, 50)], 60)
  const change = state.replace([entry(KEYS.partition(1), revoking(B).raw, 50)], 40)
  assert.deepEqual(change, { ...UNTOUCHED, partitions: [1] })
  assert.deepEqual(state.record(1), revoking(B))
  assert.equal(state.revision, 40)
})

test('group state, record of an unknown version, throws rather than guesses', () => {
  const later = owned().raw.replace('"v":1', '"v":2')
  for (const fold of [
    (state: GroupState) => state.apply([put(KEYS.partition(1), later, 5)], 5),
    (state: GroupState) => state.replace([entry(KEYS.partition(1), later, 5)], 5),
    (state: GroupState) =>
      state.apply(
        [put(KEYS.config, encodeGroupConfig(newGroupConfig({})).replace('"v":1', '"v":9'), 5)],
        5,
      ),
  ]) {
    assert.throws(
      () => fold(new GroupState(KEYS)),
      (error) => isTenureError(error, 'record-version-unknown'),
    )
  }
})

test('group state, keys that it does not know, are counted and otherwise left alone', () => {
  const state = new GroupState(KEYS)
  const change = state.apply([put(`${KEYS.prefix}later/thing`, 'anything', 5)], 5)
  assert.deepEqual(change, { ...UNTOUCHED, plans: true })
  assert.deepEqual(state.summary(), { count: 1, newestModRevision: 5 })
})
