/** Plan: no `serve` process at all. Members join, die and leave; elections alone keep all owned. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorld, SOON } from '../support/world.ts'

test('no rebalancer, members that join, die and leave leave nothing ownerless', async (t) => {
  const world = await createWorld(t)
  const [first, second] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined && second !== undefined)
  const third = world.startWorker('w-3')
  await third.ready()
  first.signal('SIGKILL')
  // What the dead one had goes to whom the assignor names: the one without anything comes first.
  await world.balancedOver(['w-2', 'w-3'])
  second.signal('SIGTERM')
  assert.deepEqual(await second.ended, { code: 0, signal: null }, second.printed())
  await world.balancedOver(['w-3'])
  assert.deepEqual(second.said('lost'), [])

  const reply = await world.store.list(
    { prefix: world.keys.rebalancer, limit: 1 },
    { timeoutMs: 5000 },
  )
  assert.ok(reply.ok)
  assert.deepEqual(reply.value.entries, [], 'no rebalancer was ever elected')
  await world.assertSound()
})

test('the last member dies, the next to come takes everything', async (t) => {
  const world = await createWorld(t)
  const [only] = await world.startTogether(['w-1'])
  assert.ok(only !== undefined)
  only.signal('SIGKILL')
  await world.until(() => world.owners().every((owner) => owner === null), {
    ...SOON,
    what: 'nobody lives',
  })
  world.startWorker('w-2')
  await world.balancedOver(['w-2'])
  assert.deepEqual(
    world.owners().map((_, partition) => world.generation(partition)),
    world.owners().map(() => 2),
  )
  await world.assertSound()
})
