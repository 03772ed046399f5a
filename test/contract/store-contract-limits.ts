import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Operation,
  TRANSACTION_OPERATIONS_MAX,
  type Transaction,
} from '../../src/core/transaction.ts'
import { actions, nested, put, remove } from './store-actions.ts'
import type { WorldOf } from './store-contract.ts'

export function transactionLimitContract(worldOf: WorldOf): void {
  const start = () => {
    const world = worldOf()
    const prefix = world.freshPrefix()
    const calls = actions(world, world.connect())
    const outcome = async (success: Operation[], rest: Partial<Transaction> = {}) => {
      const reply = await calls.ask({ compare: [], failure: [], success, ...rest })
      return reply.ok ? 'ok' : reply.reason
    }
    return { key: (name: string) => prefix + name, outcome, ...calls }
  }

  test('the limit of operations counts the outer ones plus the largest nested list', async () => {
    const { key, outcome } = start()
    const puts = (count: number, of = 'x') =>
      Array.from({ length: count }, (_, index) => put(key(`${of}${index}`), ''))
    const most = TRANSACTION_OPERATIONS_MAX
    assert.equal(await outcome(puts(most)), 'ok')
    assert.equal(await outcome(puts(most + 1)), 'refused')
    assert.equal(await outcome([], { failure: puts(most + 1) }), 'refused')
    const nestedLists = (outer: number, inner: number) =>
      Array.from({ length: outer }, (_, index) =>
        nested([], index < 3 ? puts(inner, `${index}-`) : []),
      )
    assert.equal(await outcome(nestedLists(100, 28)), 'ok')
    assert.equal(await outcome(nestedLists(100, 29)), 'refused')
    assert.equal(await outcome(nestedLists(120, 8)), 'ok')
    assert.equal(await outcome(nestedLists(120, 9)), 'refused')
  })

  test('compares count as operations do, at the depth where they stand', async () => {
    const { key, outcome } = start()
    const compare = (count: number) =>
      Array.from({ length: count }, () => ({ type: 'absent', key: key('none') }) as const)
    assert.equal(await outcome([], { compare: compare(128) }), 'ok')
    assert.equal(await outcome([], { compare: compare(129) }), 'refused')
    assert.equal(await outcome([nested(compare(127), [])]), 'ok')
    assert.equal(await outcome([nested(compare(128), [])]), 'refused')
    assert.equal(await outcome([nested(compare(8), [])], { compare: compare(120) }), 'ok')
    assert.equal(await outcome([nested(compare(9), [])], { compare: compare(120) }), 'refused')
  })

  test('a key put twice, or put and deleted, in one transaction is refused as etcd refuses it', async () => {
    const { key, outcome, read } = start()
    const [a, gone] = [put(key('a'), '1'), remove(key('a'))]
    assert.equal(await outcome([a, a]), 'refused')
    assert.equal(await outcome([a, gone]), 'refused')
    assert.equal(await outcome([a, nested([], [a])]), 'refused')
    assert.equal(await outcome([gone, nested([], [a])]), 'refused')
    assert.equal(await outcome([nested([], [a]), nested([], [a])]), 'refused')
    assert.equal(await outcome([nested([], [gone]), nested([], [a])]), 'refused')
    assert.equal(await outcome([], { failure: [a, a] }), 'refused')
    assert.equal(await read(key('a')), null)
    assert.equal(await outcome([nested([], [a], [a])]), 'ok')
    assert.equal(await outcome([nested([], [a]), nested([], [gone])]), 'ok')
    assert.equal(await read(key('a')), null)
  })

  test('a request beyond what etcd takes is refused and does nothing', async () => {
    const { key, outcome, read } = start()
    assert.equal(await outcome([put(key('huge'), 'x'.repeat(1_700_000))]), 'refused')
    assert.equal(await read(key('huge')), null)
    assert.equal(await outcome([put(key('large'), 'x'.repeat(1_400_000))]), 'ok')
  })

  test('an empty key is refused', async () => {
    const { outcome } = start()
    assert.equal(await outcome([put('', '1')]), 'refused')
    assert.equal(await outcome([], { compare: [{ type: 'absent', key: '' }] }), 'refused')
  })
}
