/** Plan: the ring as an order of preference, against hashring used plainly, and as the assignor uses it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import HashRing from 'hashring'
import { assign } from '../../src/core/assignor.ts'
import type { MemberName } from '../../src/core/ids.ts'
import { memberName } from '../../src/core/ids.ts'
import { createRingOrder } from '../../src/ring/hashring-order.ts'

function members(count: number): readonly MemberName[] {
  return Array.from({ length: count }, (_, index) => memberName(`orders-${index}`))
}

test('ring order, the same names in any sequence and in another process, is the same', () => {
  const names = members(9)
  const one = createRingOrder()(names)
  const other = createRingOrder()([...names.slice(4).reverse(), ...names.slice(0, 4), ...names])
  for (let partition = 0; partition < 500; partition += 1) {
    assert.deepEqual(one.order(partition, 9), other.order(partition, 9))
  }
})

test('ring order, any count, is what hashring answers with md5 and explicit virtual nodes', () => {
  const names = members(7)
  const explicit = Object.fromEntries([...names].sort().map((name) => [name, { vnodes: 100 }]))
  const plain = new HashRing(explicit, 'md5', { 'vnode count': 1 })
  const { order } = createRingOrder()(names)
  for (const count of [1, 2, 7, 1]) {
    for (let partition = 0; partition < 500; partition += 1) {
      assert.deepEqual(order(partition, count), plain.range(String(partition), count))
    }
  }
})

test('ring order, a longer answer, names each member once and begins with the shorter one', () => {
  const { order } = createRingOrder()(members(12))
  for (let partition = 0; partition < 200; partition += 1) {
    const all = order(partition, 100)
    assert.equal(new Set(all).size, 12)
    for (const count of [1, 3, 12]) assert.deepEqual(order(partition, count), all.slice(0, count))
    assert.deepEqual(order(partition, 0), [])
  }
})

test('ring order, a member more, leaves the others as they stood to each other', () => {
  const orderOf = createRingOrder()
  for (const count of [6, 13, 48]) {
    const before = orderOf(members(count))
    const after = orderOf(members(count + 1))
    const newcomer = memberName(`orders-${count}`)
    for (let partition = 0; partition < 300; partition += 1) {
      const kept = after.order(partition, count + 1).filter((name) => name !== newcomer)
      assert.deepEqual(kept, before.order(partition, count))
    }
  }
})

test('ring order, no members or one, answers none or that one', () => {
  const orderOf = createRingOrder()
  assert.deepEqual(orderOf([]).order(3, 5), [])
  assert.deepEqual(orderOf([memberName('7')]).order(3, 5), ['7'])
})

test('ring order, more memberships than it keeps, answers the same when one returns', () => {
  const orderOf = createRingOrder()
  const first = orderOf(members(3))
  const answers = Array.from({ length: 100 }, (_, partition) => first.order(partition, 3))
  assert.equal(orderOf(members(3)), first, 'a membership that it still keeps')
  for (let count = 4; count < 14; count += 1) orderOf(members(count)).order(1, 1)
  const again = orderOf(members(3))
  assert.notEqual(again, first)
  assert.deepEqual(
    answers.map((_, partition) => again.order(partition, 3)),
    answers,
  )
})

test('ring order, names that objects know, stand on the ring like any other', () => {
  const names = ['constructor', 'toString', '10', '9'].map(memberName)
  const seen = new Set<string>()
  const { order } = createRingOrder()(names)
  for (let partition = 0; partition < 200; partition += 1) {
    assert.equal(order(partition, 4).length, 4)
    seen.add(order(partition, 1)[0] ?? '')
  }
  assert.deepEqual([...seen].sort(), [...names].sort())
})

test('ring order, 10,000 partitions of 10 members, lets most sit where they prefer', () => {
  const names = members(10)
  const order = createRingOrder()(names)
  const { targets, counts } = assign({
    partitions: 10_000,
    members: names.map((member) => ({ member, weight: 1, capacity: null })),
    owners: [],
    lastOwners: [],
    cameFrom: () => null,
    keeping: new Set(),
    excluded: new Set(),
    order,
  })
  assert.deepEqual([...new Set(counts.values())], [1000])
  const preferred = targets.filter((target, partition) => target === order.order(partition, 1)[0])
  assert.ok(preferred.length > 8500, `${preferred.length} sit with their first choice`)
})
