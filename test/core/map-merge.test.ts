import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { memberName } from '../../src/core/ids.ts'
import type { MapDelta } from '../../src/core/map-merge.ts'
import { mapOfSnapshot, mergeDelta, mergeSnapshot, takeSnapshot } from '../../src/core/map-merge.ts'
import { OwnershipMap } from '../../src/core/ownership-map.ts'
import {
  contentOf,
  delta,
  entry,
  INCARNATION,
  mapMember,
  member,
  replay,
  session,
} from './map-world.ts'

type Change =
  | { readonly type: 'grant'; readonly partition: number; readonly owner: number }
  | { readonly type: 'vacate'; readonly partition: number }
  | { readonly type: 'restart'; readonly owner: number }

const changes = fc.array(
  fc.oneof(
    fc.record({
      type: fc.constant('grant' as const),
      partition: fc.nat(15),
      owner: fc.nat(3),
    }),
    fc.record({ type: fc.constant('vacate' as const), partition: fc.nat(15) }),
    fc.record({ type: fc.constant('restart' as const), owner: fc.nat(3) }),
  ),
  { minLength: 1, maxLength: 40 },
)

/** One delta per change, as a publisher would send them. */
function history(list: readonly Change[]): MapDelta[] {
  const lives = [0, 0, 0, 0]
  const generations = new Array<number>(16).fill(0)
  const joined = [0, 1, 2, 3].map((number) => mapMember(number, number + 1))
  const deltas = [delta(0, 4, { members: joined })]
  let revision = 4
  for (const change of list) {
    const previous = revision
    revision += 1
    if (change.type === 'restart') {
      const life = lives[change.owner] ?? 0
      const gone = [{ ...member(change.owner, life), revision }]
      deltas.push(delta(previous, revision, { gone }))
      revision += 1
      lives[change.owner] = life + 1
      const members = [mapMember(change.owner, revision, life + 1)]
      deltas.push(delta(revision - 1, revision, { members }))
      continue
    }
    const { partition } = change
    const owner = change.type === 'vacate' ? null : change.owner
    if (owner !== null) generations[partition] = (generations[partition] ?? 0) + 1
    const granted = entry(partition, generations[partition] ?? 0, owner, revision)
    const named = owner === null ? null : member(owner, lives[owner] ?? 0)
    deltas.push(delta(previous, revision, { entries: [{ ...granted, owner: named }] }))
  }
  return deltas
}

test('map: deltas merged in any order, some twice, give the same map', () => {
  const orders = changes.chain((list) => {
    const deltas = history(list)
    const order = fc.shuffledSubarray(deltas, { minLength: deltas.length })
    return fc.tuple(fc.constant(deltas), order, fc.subarray(deltas))
  })
  fc.assert(
    fc.property(orders, ([deltas, order, again]) => {
      const map = new OwnershipMap(INCARNATION, 16)
      for (const one of [...order, ...again]) mergeDelta(map, one)
      assert.deepEqual(contentOf(map), contentOf(replay(deltas)))
    }),
  )
})

test('map: any deltas lost before a snapshot and any heard around it, converge on its publisher', () => {
  const losses = changes.chain((list) => {
    const deltas = history(list)
    return fc.tuple(
      fc.constant(deltas),
      fc.nat(deltas.length - 1),
      fc.array(fc.boolean(), { minLength: deltas.length, maxLength: deltas.length }),
    )
  })
  fc.assert(
    fc.property(losses, ([deltas, cut, heard]) => {
      const publisher = replay(deltas.slice(0, cut + 1))
      const snapshot = takeSnapshot(publisher, 'p1')
      const map = new OwnershipMap(INCARNATION, 16)
      // Any may be lost until the snapshot comes, also such as are newer than it; after it none.
      deltas.forEach((one, index) => {
        if (heard[index]) mergeDelta(map, one)
      })
      mergeSnapshot(map, snapshot)
      map.completeTo = Math.max(map.completeTo, snapshot.version.revision)
      for (const one of deltas.slice(cut + 1)) mergeDelta(map, one)
      assert.deepEqual(contentOf(map), contentOf(replay(deltas)))
    }),
  )
})

test('map: an entry below what the map is complete to is old news', () => {
  const map = replay([delta(0, 10, { entries: [entry(3, 7, 1, 10)] })])
  assert.deepEqual(mergeDelta(map, delta(4, 5, { entries: [entry(3, 6, 2, 5)] })), {
    partitions: [],
    members: false,
  })
  assert.equal(map.view(3).generation, 7)
})

test('map: a session that went never lives again, whatever comes late', () => {
  const map = replay([
    delta(0, 1, { members: [mapMember(1, 1)] }),
    delta(1, 2, { gone: [{ ...member(1), revision: 2 }] }),
  ])
  mergeDelta(map, delta(2, 9, { members: [mapMember(1, 9)] }))
  assert.equal(map.members.live(memberName('orders-1')), null)
})

test('map: a member that goes makes its partitions vacant without an entry of theirs', () => {
  const map = replay([delta(0, 2, { members: [mapMember(1, 1)], entries: [entry(5, 1, 1, 2)] })])
  assert.deepEqual(map.owner(5), {
    partition: 5,
    ...member(1),
    address: '10.0.0.1:8080',
    incarnation: INCARNATION,
    generation: 1,
    serving: false,
    phase: 'owned',
  })
  mergeDelta(map, delta(2, 3, { gone: [{ ...member(1), revision: 3 }] }))
  assert.equal(map.owner(5), null)
  assert.equal(map.view(5).owner?.live, false)
})

test('map: a snapshot of a restored etcd replaces entries whose revisions it passed', () => {
  const map = replay([delta(0, 10, { entries: [entry(3, 7, null, 10)] })])
  const restored = replay([delta(0, 12, { entries: [entry(3, 5, null, 6)] })])
  mergeSnapshot(map, takeSnapshot(restored, 'p2'))
  assert.equal(map.view(3).generation, 5)
})

test('map: what a member serves counts at exactly its grant, heard before or after it', () => {
  const map = replay([delta(0, 2, { members: [mapMember(1, 1)], entries: [entry(5, 1, 1, 2)] })])
  assert.equal(map.markServing(5, INCARNATION, 2, true), true)
  assert.equal(map.isServing(5), false)
  mergeDelta(map, delta(2, 3, { entries: [entry(5, 2, 1, 3)] }))
  assert.equal(map.isServing(5), true)
  assert.equal(map.markServing(5, INCARNATION, 1, false), false)
  assert.equal(map.isServing(5), true)
  assert.equal(map.markServing(5, INCARNATION, 2, false), true)
  assert.equal(map.isServing(5), false)
  assert.equal(mapOfSnapshot(takeSnapshot(map, 'p1')).isServing(5), false)
})

test('map: 10,000 sessions that came and went leave the table bounded', () => {
  const map = new OwnershipMap(INCARNATION, 4)
  for (let life = 0; life < 10_000; life += 1) {
    const revision = life * 2 + 1
    const one = { member: memberName('orders-1'), session: session(life) }
    map.putMember({ ...one, address: '', zone: '', revision })
    map.removeMember({ ...one, revision: revision + 1 })
    map.members.sweep(revision + 1)
  }
  assert.ok(map.members.size <= 1100, `${map.members.size} slots`)
  assert.equal(map.hash(), '0'.repeat(16))
})
