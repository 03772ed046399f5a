/**
 * Plan: proxies between a worker and etcd misbehave: the reply to a grant is lost after etcd carried it
 * out, standing connections fall silent, everything does. Nothing of it may cost a partition, double an
 * owner, or let work in past the deadline.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineMs } from '../../../src/dev/machine-time.ts'
import { startRequestCounter } from '../../support/request-counter.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { admittedAfter } from '../support/effects.ts'
import { grantsOf } from '../support/group-history.ts'
import { createWorld, LONG_TTL, SOON } from '../support/world.ts'

/** Between admitting work and stamping it a busy machine may look elsewhere. */
const STAMP_SLACK_MS = 250

test('the reply to a campaign is lost, the partitions are won once and served', async (t) => {
  const world = await createWorld(t)
  const counter = await startRequestCounter(t, world.etcd.clientPort)
  const [first, second] = await world.startTogether(['w-1', 'w-2'], (member) =>
    member === 'w-2' ? { etcdEndpoints: [counter.endpoint] } : {},
  )
  assert.ok(first !== undefined && second !== undefined)
  const orphans = world.ownedBy('w-1')
  const before = orphans.map((partition) => world.generation(partition))
  // The name of a partition's record stands in grants and in nothing else that a worker sends.
  const lost = counter.loseNextReply('KV/Txn', '/partitions/')
  first.signal('SIGKILL')
  await lost
  await world.balancedOver(['w-2'])
  assert.deepEqual(
    orphans.map((partition) => world.generation(partition)),
    before.map((generation) => generation + 1),
  )
  assert.deepEqual(second.said('refused'), [])
  await world.assertSound()
})

test('the reply to a hand-over is lost, the partition moves once', async (t) => {
  const world = await createWorld(t, LONG_TTL)
  const counter = await startRequestCounter(t, world.etcd.clientPort)
  const serve = await world.startServe()
  await serve.change('PUT', '/freeze', {})
  const [first, second] = await world.startTogether(['w-1', 'w-2'], (member) =>
    member === 'w-1' ? { etcdEndpoints: [counter.endpoint] } : {},
  )
  assert.ok(first !== undefined && second !== undefined)
  const [partition = -1] = world.ownedBy('w-1')
  const before = world.generation(partition)
  const lost = counter.loseNextReply('KV/Txn', `/partitions/${String(partition).padStart(6, '0')}`)
  await serve.move(partition, 'w-2')
  await lost
  await world.until(() => world.owners()[partition] === 'w-2', { ...SOON, what: 'the move' })
  await world.progress()
  assert.equal(world.generation(partition), before + 1)
  assert.deepEqual([...first.said('lost'), ...second.said('lost')], [])
  await world.until(
    () => first.events('released').filter((event) => event.partition === partition).length === 1,
    { ...SOON, what: 'the old owner knows' },
  )

  // And all the rest at once, as the worker leaves.
  const leaving = counter.loseNextReply('KV/Txn', '/partitions/')
  first.signal('SIGTERM')
  await leaving
  assert.deepEqual(await first.ended, { code: 0, signal: null }, first.printed())
  await world.balancedOver(['w-2'])
  assert.deepEqual([...first.said('lost'), ...second.said('lost')], [])
  assert.ok(
    grantsOf(world.history.events).every(
      ({ how, generation }) => generation === 1 || how === 'hand-over',
    ),
  )
  await world.assertSound()
})

test('standing connections fall silent, the worker finds a new one or stops by its deadline', async (t) => {
  const world = await createWorld(t)
  const proxy = await startTcpProxy(t, world.etcd.clientPort)
  const [worker] = await world.startTogether(['w-1', 'w-2'], (member) =>
    member === 'w-1' ? { etcdEndpoints: [proxy.endpoint] } : {},
  )
  assert.ok(worker !== undefined)
  const session = worker.session()
  const { leaseTtlMs, marginMs } = world.config
  proxy.stallStanding()
  const stalledAtMs = machineMs()
  const provedAnew = () =>
    worker.said('telemetry').some(({ event, atMs }) => {
      return event.type === 'session-proved' && atMs > stalledAtMs + leaseTtlMs
    })
  await world.until(provedAnew, { ...SOON, what: 'proofs over a new connection' })
  await world.progress()
  const ended = worker.events('session-ended')
  if (ended.length > 0) {
    assert.ok(ended.every(({ cause }) => cause === 'deadline'))
    const deadlineMs = stalledAtMs + leaseTtlMs - marginMs
    assert.deepEqual(admittedAfter(world.resource, session, deadlineMs + STAMP_SLACK_MS), [])
  } else assert.deepEqual(worker.said('lost'), [])
  await world.assertSound()
})

test('etcd is a black hole for one worker, it stops by its deadline and comes back after', async (t) => {
  const world = await createWorld(t)
  const proxy = await startTcpProxy(t, world.etcd.clientPort)
  const [worker, other] = await world.startTogether(['w-1', 'w-2'], (member) =>
    member === 'w-1' ? { etcdEndpoints: [proxy.endpoint] } : {},
  )
  assert.ok(worker !== undefined && other !== undefined)
  const session = worker.session()
  const { leaseTtlMs, marginMs } = world.config
  const owned = world.ownedBy('w-1')
  proxy.pause()
  const pausedAtMs = machineMs()
  const lost = () => worker.said('lost').filter(({ token }) => token.session === session)
  await world.until(() => lost().length === owned.length, { ...SOON, what: 'all lost' })
  assert.ok(lost().every(({ cause }) => cause === 'deadline'))
  await world.balancedOver(['w-2'])
  const deadlineMs = pausedAtMs + leaseTtlMs - marginMs
  assert.deepEqual(admittedAfter(world.resource, session, deadlineMs + STAMP_SLACK_MS), [])
  proxy.resume()
  await world.until(() => worker.session() !== session, { ...SOON, what: 'a new session' })
  // It takes part again: when the other one leaves, everything is handed to it.
  other.signal('SIGTERM')
  assert.deepEqual(await other.ended, { code: 0, signal: null })
  await world.balancedOver(['w-1'])
  await world.assertSound()
})
