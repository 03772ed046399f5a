/**
 * Plan: etcd is killed with SIGKILL and comes back on its data: sooner than sessions run out, and later.
 * Then it forgets its history while a worker's watch is broken.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineMs } from '../../../src/dev/machine-time.ts'
import { compact } from '../../support/etcd-admin.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { admittedAfter } from '../support/effects.ts'
import { grantsOf } from '../support/group-history.ts'
import { createWorld, SOON } from '../support/world.ts'

/** Between admitting work and stamping it a busy machine may look elsewhere. */
const STAMP_SLACK_MS = 250

test('etcd restarted within T, sessions and owners stay, work goes on meanwhile', async (t) => {
  const world = await createWorld(t, { leaseTtlMs: 30_000 })
  await world.startServe()
  const workers = [world.startWorker('w-1'), world.startWorker('w-2')]
  await world.balancedOver(['w-1', 'w-2'])
  const sessions = workers.map((worker) => worker.session())
  const grants = grantsOf(world.history.events)
  await world.etcd.kill()
  await world.progress({ timeoutMs: 10_000 })
  await world.etcd.restart()
  // Each proves its session to the etcd that came back.
  const proofs = workers.map((worker) => worker.events('session-proved').length)
  await world.until(
    () => workers.every((one, index) => one.events('session-proved').length > (proofs[index] ?? 0)),
    { ...SOON, what: 'a proof of each session' },
  )
  await world.progress()
  await world.assertSound()
  assert.deepEqual(
    workers.map((worker) => worker.session()),
    sessions,
  )
  assert.deepEqual(
    workers.map((worker) => worker.said('lost').length),
    [0, 0],
  )
  assert.deepEqual(grantsOf(world.history.events), grants, 'nothing was granted')
})

test('etcd away for longer than T, all stop by their deadline, nobody grants, all recovers', async (t) => {
  const world = await createWorld(t)
  await world.startServe()
  const workers = [world.startWorker('w-1'), world.startWorker('w-2')]
  await world.balancedOver(['w-1', 'w-2'])
  const sessions = workers.map((worker) => worker.session())
  const { leaseTtlMs, marginMs } = world.config
  await world.etcd.kill()
  // No keepalive sent later can have been answered.
  const killedAtMs = machineMs()
  const held = workers.map(({ member }) => world.ownedBy(member).length)
  await world.until(
    () => workers.every((worker, index) => worker.said('lost').length === held[index]),
    { ...SOON, what: 'everything lost' },
  )
  for (const worker of workers) {
    assert.ok(worker.said('lost').every(({ cause }) => cause === 'deadline'))
    assert.equal(worker.end(), null)
  }
  await world.etcd.restart()
  await world.balancedOver(['w-1', 'w-2'])
  const deadlineMs = killedAtMs + leaseTtlMs - marginMs
  for (const session of sessions) {
    assert.deepEqual(admittedAfter(world.resource, session, deadlineMs + STAMP_SLACK_MS), [])
  }
  assert.ok(workers.every((worker) => !sessions.includes(worker.session())))
  await world.assertSound()
})

test('etcd compacted while a watch is broken, the watcher lists anew and misses nothing', async (t) => {
  const world = await createWorld(t, { leaseTtlMs: 30_000 })
  const serve = await world.startServe()
  const proxy = await startTcpProxy(t, world.etcd.clientPort)
  const direct = world.startWorker('w-1')
  const broken = world.startWorker('w-2', { etcdEndpoints: [proxy.endpoint] })
  await world.balancedOver(['w-1', 'w-2'])
  const [disabled = -1, wanted = -1] = world.ownedBy('w-2')
  await compactAll()
  await proxy.refuse()
  // What the broken watch misses: a partition of its own is disabled, another one revoked.
  await serve.change('PUT', `/partitions/${disabled}/disabled`, {})
  await serve.move(wanted, 'w-1')
  await world.until(() => world.now().records.get(wanted)?.phase === 'revoking', {
    ...SOON,
    what: 'the move is asked for',
  })
  await compactAll()
  await proxy.accept()
  await world.until(
    () => {
      const owners = world.owners()
      return owners[disabled] === null && owners[wanted] === 'w-1'
    },
    { ...SOON, what: 'both given up' },
  )
  // It hears of the compaction, or its check is faster and sees that it missed something.
  const lists = broken.events('mirror-listed').map(({ why }) => why)
  assert.ok(lists.includes('compacted') || lists.includes('out of step'), `lists: ${lists}`)
  assert.ok(
    direct.events('mirror-listed').every(({ why }) => why !== 'compacted'),
    'a watch that stands is not hurt by a compaction',
  )
  await serve.change('DELETE', `/partitions/${disabled}/disabled`)
  await world.progress()
  assert.deepEqual([...direct.said('lost'), ...broken.said('lost')], [])
  await world.assertSound()

  async function compactAll(): Promise<void> {
    const reply = await world.store.status({ timeoutMs: 5000 })
    assert.ok(reply.ok)
    await compact(world.etcd.endpoint, reply.revision)
  }
})
