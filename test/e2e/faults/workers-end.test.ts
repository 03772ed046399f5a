/**
 * Plan: worker processes end in every way that processes do, under load on real servers: SIGTERM one
 * after the other, SIGKILL, an exception that nobody catches, SIGTERM twice. etcd's history and the
 * fenced resource judge.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineMs } from '../../../src/dev/machine-time.ts'
import { grantsOf } from '../support/group-history.ts'
import { createWorld, LONG_TTL, SOON } from '../support/world.ts'

/** What a loaded machine may add to a promised time. */
const SLACK_MS = 5000

test('rolling restart of four workers under load, exits 0 each, loses nothing', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  await world.startServe()
  const names = ['w-1', 'w-2', 'w-3', 'w-4']
  const workers = new Map(names.map((name) => [name, world.startWorker(name)]))
  await world.balancedOver(names)
  const before = [...workers.values()]
  for (const worker of before) {
    worker.signal('SIGTERM')
    assert.deepEqual(await worker.ended, { code: 0, signal: null }, worker.printed())
    await world.until(() => world.ownedBy(worker.member).length === 0, {
      ...SOON,
      what: `${worker.member} owns nothing`,
    })
    assert.ok(
      world.owners().every((owner) => owner !== null),
      `nothing is ownerless: ${world.owners()}`,
    )
    workers.set(worker.member, world.startWorker(worker.member))
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

test('a worker killed with SIGKILL, its partitions are served elsewhere, one generation on', async (t) => {
  const world = await createWorld(t)
  // No rebalancer: nothing but the death may change an owner.
  const [first, second] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined && second !== undefined)
  const orphans = world.ownedBy('w-1')
  const before = world.owners().map((_, partition) => world.generation(partition))
  const killedAtMs = machineMs()
  first.signal('SIGKILL')
  await world.balancedOver(['w-2'])
  assert.deepEqual(
    world.owners().map((_, partition) => world.generation(partition)),
    before.map((generation, partition) => generation + (orphans.includes(partition) ? 1 : 0)),
  )
  const grants = grantsOf(world.history.events).filter(({ atMs }) => atMs > killedAtMs)
  assert.deepEqual(grants.map(({ partition }) => partition).sort(byNumber), orphans)
  const tookMs = Math.max(...grants.map(({ atMs }) => atMs)) - killedAtMs
  assert.ok(tookMs < world.config.leaseTtlMs + SLACK_MS, `elected after ${tookMs} ms`)
  assert.deepEqual(second.said('lost'), [])
  await world.assertSound()
})

test('an exception that nobody catches, closes the session at once and exits non-zero', async (t) => {
  // Far above what the move may take, so that an expired lease cannot be the reason.
  const world = await createWorld(t, { leaseTtlMs: 60_000 })
  const [first] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined)
  first.send({ type: 'throw' })
  const { code } = await first.ended
  assert.equal(code, 1, first.printed())
  assert.match(first.printed(), /thrown where nobody catches/)
  await world.until(() => world.owners().every((owner) => owner === 'w-2'), {
    timeoutMs: 20_000,
    what: 'everything owned by w-2',
  })
  await world.progress()
  await world.assertSound()
})

test('SIGTERM with work that never ends, waits; a second SIGTERM forces', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  const [first] = await world.startTogether(['w-1', 'w-2'])
  assert.ok(first !== undefined)
  const [stuck = -1, ...others] = world.ownedBy('w-1')
  const hold = world.resource.hold('apply', stuck)
  await world.until(() => hold.waiting().length > 0, { ...SOON, what: 'work in flight' })
  first.signal('SIGTERM')
  await world.until(() => others.every((partition) => world.owners()[partition] === 'w-2'), {
    ...SOON,
    what: 'all others handed over',
  })
  assert.equal(world.owners()[stuck], 'w-1', 'work in flight keeps its partition')
  assert.equal(first.end(), null)
  first.signal('SIGTERM')
  // The gate of the work is closed, but its code still runs: only the end of the process ends that.
  assert.deepEqual(await first.ended, { code: 70, signal: null }, first.printed())
  const [lost, ...more] = first.said('lost')
  assert.deepEqual([lost?.token.partition, lost?.cause, more.length], [stuck, 'closed', 0])
  // Its session was closed, not left to run out.
  await world.until(() => world.owners()[stuck] === 'w-2', {
    timeoutMs: 20_000,
    what: 'the stuck partition elected elsewhere',
  })
  hold.letGo()
  await world.progress()
  const late = world.resource.effects.filter(({ outcome }) => outcome === 'refused')
  assert.deepEqual(
    late.map(({ token }) => [token.partition, token.session]),
    [[stuck, first.session()]],
    'the late write is refused',
  )
  await world.assertSound()
})

function byNumber(a: number, b: number): number {
  return a - b
}
