/**
 * Plan: worker processes end in every way that processes do, under load on real servers: SIGTERM one
 * after the other, SIGKILL, an exception that nobody catches, SIGTERM twice. etcd's history and the
 * fenced resource judge.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grantsOf } from '../support/group-history.ts'
import { createWorld } from '../support/world.ts'

test('rolling restart of four workers under load, exits 0 each, loses nothing', async (t) => {
  const world = await createWorld(t, { leaseTtlMs: 6000 })
  await world.startServe()
  const names = ['w-1', 'w-2', 'w-3', 'w-4']
  const workers = new Map(names.map((name) => [name, world.startWorker(name)]))
  await world.balancedOver(names)
  const before = [...workers.values()]
  for (const name of names) {
    const worker = workers.get(name)
    assert.ok(worker !== undefined)
    worker.signal('SIGTERM')
    assert.deepEqual(await worker.ended, { code: 0, signal: null }, worker.printed())
    assert.deepEqual(world.ownedBy(name), [])
    assert.ok(
      world.owners().every((owner) => owner !== null),
      `nothing is ownerless: ${world.owners()}`,
    )
    const next = world.startWorker(name)
    workers.set(name, next)
    await world.balancedOver(names)
  }
  for (const worker of [...before, ...workers.values()]) {
    assert.deepEqual(worker.said('lost'), [], `${worker.member} lost nothing`)
    assert.deepEqual(worker.said('refused'), [])
  }
  const after = grantsOf(world.history.events).filter(({ generation }) => generation > 1)
  assert.ok(after.length >= 12, `${after.length} partitions changed hands`)
  assert.ok(
    after.every(({ how }) => how === 'hand-over'),
    'each by its owner',
  )
  await world.assertSound()
})
