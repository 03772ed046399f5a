/**
 * Plan: what operators say through the HTTP interface of a real `serve` process, done by real workers:
 * freeze, disable, cordon, and a move that is cancelled while it drains.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grantsOf } from '../support/group-history.ts'
import { createWorld, LONG_TTL, SOON } from '../support/world.ts'

test('a frozen group, plans no move for a newcomer but obeys an operator’s own', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  const serve = await world.startServe()
  await world.startTogether(['w-1', 'w-2'])
  await serve.change('PUT', '/freeze', { reason: 'test', by: 'ann' })
  const newcomer = world.startWorker('w-3')
  await newcomer.ready()
  const [partition = -1] = world.ownedBy('w-1')
  const move = await serve.move(partition, 'w-3')
  await world.until(async () => (await serve.rebalance(move.id)).state === 'done', {
    ...SOON,
    what: 'the operator’s move',
  })
  assert.deepEqual(world.ownedBy('w-3'), [partition])
  // The rebalancer has looked at the newcomer by now, and was due to balance.
  await world.progress()
  assert.deepEqual(world.ownedBy('w-3'), [partition])
  await serve.change('DELETE', '/freeze')
  await world.until(() => world.ownedBy('w-3').length === 4, { ...SOON, what: 'balanced' })
  await world.progress()
  await world.assertSound()
})

test('a disabled partition, is drained and has no owner until it is enabled', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  const serve = await world.startServe()
  const workers = await world.startTogether(['w-1', 'w-2'])
  const generation = world.generation(3)
  await serve.change('PUT', '/partitions/3/disabled', { reason: 'test' })
  await world.until(() => world.now().records.get(3)?.phase === 'vacant', {
    ...SOON,
    what: 'vacant',
  })
  const { partition } = (await serve.get('/partitions/3')) as { partition: { why: string } }
  assert.match(partition.why, /disabled/)
  assert.equal(world.generation(3), generation)
  const drained = workers.flatMap((worker) => worker.said('released'))
  assert.deepEqual(
    drained.map(({ token }) => [token.partition, token.generation]),
    [[3, generation]],
  )
  assert.deepEqual(
    workers.flatMap((worker) => worker.said('lost')),
    [],
  )
  await serve.change('DELETE', '/partitions/3/disabled')
  await world.progress()
  assert.equal(world.generation(3), generation + 1)
  await world.assertSound()
})

test('a cordoned name, gets nothing until the cordon goes', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  const serve = await world.startServe()
  const [first] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined)
  // Frozen until the cordon stands, so that the newcomer gets nothing before.
  await serve.change('PUT', '/freeze', {})
  const cordoned = world.startWorker('w-3')
  await cordoned.ready()
  await serve.change('PUT', '/members/w-3/cordon', { reason: 'test' })
  await serve.change('DELETE', '/freeze')
  // With one less there is something to give; the cordoned member gets none of it.
  first.signal('SIGTERM')
  await first.ended
  await world.balancedOver(['w-2'])
  assert.ok(world.owners().every((owner) => owner === 'w-2'))
  await serve.change('DELETE', '/members/w-3/cordon')
  await world.balancedOver(['w-2', 'w-3'])
  const grants = grantsOf(world.history.events).filter(({ member }) => member === 'w-3')
  assert.equal(grants.length, 6)
  await world.assertSound()
})

test('a move cancelled while it drains, its owner finishes the drain and grants itself anew', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  const serve = await world.startServe()
  await serve.change('PUT', '/freeze', {})
  const [first] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined)
  const [partition = -1] = world.ownedBy('w-1')
  const generation = world.generation(partition)
  const hold = world.resource.hold('apply', partition)
  await world.until(() => hold.waiting().length > 0, { ...SOON, what: 'work in flight' })
  const move = await serve.move(partition, 'w-2')
  await world.until(() => world.now().records.get(partition)?.phase === 'revoking', {
    ...SOON,
    what: 'revoked',
  })
  await serve.change('DELETE', `/rebalances/${move.id}`)
  const target = () => {
    const record = world.now().records.get(partition)
    return record?.phase === 'revoking' ? record.move.to : null
  }
  await world.until(() => target() === 'w-1', { ...SOON, what: 'turned back' })
  assert.equal(world.generation(partition), generation, 'no grant before the drain is over')
  hold.letGo()
  await world.until(() => world.generation(partition) === generation + 1, {
    ...SOON,
    what: 'granted anew',
  })
  await world.until(async () => (await serve.rebalance(move.id)).state === 'cancelled', {
    ...SOON,
    what: 'cancelled',
  })
  await world.progress()
  assert.equal(world.owners()[partition], 'w-1')
  const own = (type: 'acquired' | 'released') =>
    first
      .said(type)
      .flatMap(({ token }) => (token.partition === partition ? [token.generation] : []))
  assert.deepEqual(own('acquired'), [generation, generation + 1])
  assert.deepEqual(own('released'), [generation])
  assert.deepEqual(first.said('lost'), [])
  await world.assertSound()
})
