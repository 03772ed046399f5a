/** Plan: worker processes that must not join: of another P, of a name that another process uses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorld, LONG_TTL, SOON } from '../support/world.ts'

test('a worker with another P, is refused naming both values, before it joins', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  await world.startTogether(['w-1'], () => ({ settings: { partitions: 12 } }))
  const other = world.startWorker('w-2', { settings: { partitions: 16 } })
  const { code } = await other.ended
  assert.notEqual(code, 0)
  const [failure] = other.said('failed')
  assert.equal(failure?.code, 'config-mismatch')
  assert.match(failure?.message ?? '', /partitions 16.*12/)
  assert.ok(!world.history.events.some((event) => 'member' in event && event.member === 'w-2'))
  assert.ok(world.owners().every((owner) => owner === 'w-1'))
  await world.assertSound()
})

test('a name that a living process uses, the second process is refused and the first keeps all', async (t) => {
  const world = await createWorld(t, { leaseTtlMs: 5000 })
  const [first] = await world.startTogether(['w-1'])
  assert.ok(first !== undefined)
  const second = world.startWorker('w-1')
  const { code } = await second.ended
  assert.notEqual(code, 0)
  const [failure] = second.said('failed')
  assert.equal(failure?.code, 'member-name-in-use')
  assert.match(failure?.message ?? '', /w-1/)
  assert.deepEqual(second.said('acquired'), [])
  assert.deepEqual(first.said('lost'), [])
  const began = world.history.events.filter(({ type }) => type === 'session-began')
  assert.equal(began.length, 1, 'one session, all the time')
  await world.progress()
  await world.assertSound()
})

test('a name whose process was killed, the next process waits for the old session and joins', async (t) => {
  const world = await createWorld(t, { leaseTtlMs: 5000 })
  const [first] = await world.startTogether(['w-1'])
  assert.ok(first !== undefined)
  const next = world.startWorker('w-1', { waitsForGo: true })
  await next.started()
  first.signal('SIGKILL')
  await first.ended
  next.send({ type: 'go' })
  await next.ready()
  await world.until(() => world.owners().every((owner) => owner === 'w-1'), {
    ...SOON,
    what: 'everything owned again',
  })
  await world.progress()
  assert.notEqual(next.session(), first.session())
  await world.assertSound()
})
