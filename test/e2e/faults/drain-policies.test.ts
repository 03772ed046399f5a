/**
 * Plan: a move meets work that does not end within the drain's deadline, under each of the policies; and
 * an operator evicts a member.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { GroupSettings } from '../../../src/core/group-config.ts'
import { grantsOf } from '../support/group-history.ts'
import { createWorld, LONG_TTL, SOON } from '../support/world.ts'

const DEADLINE_MS = 1500

/** A move of one partition from w-1 to w-2 whose drain is stuck, past its deadline soon. */
async function stuckMove(t: TestContext, settings: GroupSettings) {
  const world = await createWorld(t, { ...LONG_TTL, ...settings })
  const serve = await world.startServe()
  await serve.change('PUT', '/freeze', {})
  const [first, second] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined && second !== undefined)
  const [partition = -1, ...others] = world.ownedBy('w-1')
  const hold = world.resource.hold('apply', partition)
  await world.until(() => hold.waiting().length > 0, { ...SOON, what: 'work in flight' })
  const move = await serve.move(partition, 'w-2')
  return { world, serve, first, second, partition, others, hold, move }
}

test('drain overdue under "wait", raises an alarm and stays with its owner until it ends', async (t) => {
  const drain = { deadlineMs: DEADLINE_MS, policy: 'wait' } as const
  const { world, serve, first, partition, hold, move } = await stuckMove(t, {
    fenced: false,
    drain,
  })
  const overdue = () => first.events('drain-overdue').map((event) => event.partition)
  await world.until(() => overdue().length > 0, { ...SOON, what: 'overdue' })
  assert.deepEqual(overdue(), [partition])
  await world.until(async () => String((await serve.get(''))['alarms']).includes('drain-overdue'), {
    ...SOON,
    what: 'the alarm at the operators',
  })
  const record = world.now().records.get(partition)
  assert.equal(record?.phase, 'revoking')
  assert.equal(world.owners()[partition], 'w-1')
  assert.equal(hold.waiting().length, 1, 'no new work is admitted meanwhile')
  hold.letGo()
  await world.until(async () => (await serve.rebalance(move.id)).state === 'done', {
    ...SOON,
    what: 'the move is done',
  })
  await world.progress()
  assert.equal(world.owners()[partition], 'w-2')
  assert.deepEqual(first.said('lost'), [])
  await world.assertSound()
})

test('drain overdue under "fence", the record moves on and the old owner loses that one alone', async (t) => {
  const drain = { deadlineMs: DEADLINE_MS, policy: 'fence' } as const
  const { world, first, partition, others, hold } = await stuckMove(t, { drain })
  const session = first.session()
  await world.until(() => world.owners()[partition] === 'w-2', { ...SOON, what: 'moved on' })
  const grant = grantsOf(world.history.events)
    .filter((one) => one.partition === partition)
    .at(-1)
  assert.equal(grant?.how, 'forced')
  await world.until(() => first.said('lost').length > 0, { ...SOON, what: 'the old owner knows' })
  assert.deepEqual(
    first.said('lost').map(({ token, cause }) => [token.partition, cause]),
    [[partition, 'forced']],
  )
  const sealed = () =>
    world.resource.seals.some(({ token }) => {
      return token.partition === partition && token.generation === grant?.generation
    })
  await world.until(sealed, { ...SOON, what: 'sealed by the new owner' })
  hold.letGo()
  await world.progress()
  assert.deepEqual(world.ownedBy('w-1'), others)
  assert.equal(first.session(), session)
  const late = world.resource.effects.filter(({ outcome }) => outcome === 'refused')
  assert.deepEqual(
    late.map(({ token }) => [token.partition, token.session]),
    [[partition, session]],
  )
  await world.assertSound({ forced: true })
})

test('drain overdue under "evict", the member loses all and its process exits 70', async (t) => {
  const drain = { deadlineMs: DEADLINE_MS, policy: 'evict' } as const
  const { world, first, partition, others, hold } = await stuckMove(t, { drain })
  assert.deepEqual(await first.ended, { code: 70, signal: null }, first.printed())
  const lost = first.said('lost').map(({ token }) => token.partition)
  assert.deepEqual(lost.sort(byNumber), [partition, ...others].sort(byNumber))
  await world.until(() => world.owners().every((owner) => owner === 'w-2'), {
    ...SOON,
    what: 'everything elsewhere',
  })
  hold.letGo()
  await world.progress()
  await world.assertSound()
})

test('a member evicted by an operator, loses all and exits 70; the name may come back', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  const serve = await world.startServe()
  const [first] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined)
  await serve.change('POST', '/members/w-1/evict', { reason: 'test' })
  assert.deepEqual(await first.ended, { code: 70, signal: null }, first.printed())
  await world.balancedOver(['w-2'])
  world.startWorker('w-1')
  await world.balancedOver(['w-1', 'w-2'])
  await world.assertSound()
})

test('a member evicted while its process is stopped, gives way after T and comes back anew', async (t) => {
  const world = await createWorld(t)
  const serve = await world.startServe()
  const [first] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined)
  const session = first.session()
  first.signal('SIGSTOP')
  await serve.change('POST', '/members/w-1/evict', { reason: 'test' })
  await world.until(() => world.owners().every((owner) => owner === 'w-2'), {
    ...SOON,
    what: 'everything elsewhere',
  })
  // The mark stood under the old session's lease, so it went with it.
  first.signal('SIGCONT')
  await world.until(() => first.session() !== session, { ...SOON, what: 'a new session' })
  await world.balancedOver(['w-1', 'w-2'])
  await world.assertSound()
})

function byNumber(a: number, b: number): number {
  return a - b
}
