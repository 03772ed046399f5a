/**
 * Plan: a worker process is stopped in the middle of work for longer than its session lives, then goes
 * on as if nothing had happened. Its work has begun and has not written yet, which is the worst moment.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineMs } from '../../../src/dev/machine-time.ts'
import { grantsOf } from '../support/group-history.ts'
import { createWorld, SOON } from '../support/world.ts'

test('a worker stopped beyond T, its late write is refused and it comes back anew', async (t) => {
  const world = await createWorld(t)
  await world.startServe()
  const paused = world.startWorker('w-1', { asksFirst: true })
  world.startWorker('w-2')
  await world.balancedOver(['w-1', 'w-2'])
  const [partition = -1] = world.ownedBy('w-1')
  const hold = world.resource.hold('begin', partition)
  await world.until(() => hold.waiting().length > 0, { ...SOON, what: 'work that has begun' })
  const session = hold.waiting()[0]?.session

  paused.signal('SIGSTOP')
  // Every new owner has sealed and works, also where the old one's write is still to come.
  await world.balancedOver(['w-2'])
  // Its question is answered now; the answer waits for it in its socket.
  hold.letGo()
  const resumedAtMs = machineMs()
  paused.signal('SIGCONT')
  await world.until(() => lateWrites().some(({ token }) => token.partition === partition), {
    ...SOON,
    what: 'the late write',
  })

  assert.ok(lateWrites().every(({ outcome }) => outcome === 'refused'))
  const looks = paused.said('checked').filter(({ token, atMs }) => {
    return token.session === session && atMs > resumedAtMs
  })
  assert.ok(looks.length > 0)
  assert.ok(
    looks.every(({ held }) => !held),
    'its gate is closed at its first look',
  )
  // The process comes back under a session of its own making, and gets its share again.
  await world.balancedOver(['w-1', 'w-2'])
  assert.equal(paused.end(), null)
  assert.notEqual(paused.session(), session)
  assert.ok(grantsOf(world.history.events).some((grant) => grant.session === paused.session()))
  const refusals = paused.said('not-admitted').filter(({ token }) => token.session === session)
  assert.ok(refusals.length > 0, 'no new work is admitted under the old token')
  assert.ok(
    paused.said('lost').some(({ token }) => token.partition === partition),
    'its author is told',
  )
  await world.assertSound()

  function lateWrites() {
    return world.resource.effects.filter(
      ({ token, endMs }) => token.session === session && endMs > resumedAtMs,
    )
  }
})
