/**
 * Plan: the rebalancer ends, or is stopped and goes on as a zombie, at the worst moments: between revoke
 * and grant, and with its writes on the way to etcd.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startRequestCounter } from '../../support/request-counter.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { createWorld, type ServeProcess, SOON, type World } from '../support/world.ts'

test('the rebalancer killed between revoke and grant, a second one brings the moves to an end', async (t) => {
  const world = await createWorld(t, { leaseTtlMs: 10_000 })
  const serve = await world.startServe()
  const workers = await world.startTogether(['w-1', 'w-2', 'w-3'])
  await serve.change('PUT', '/freeze', {})
  const dying = workers[2]
  assert.ok(dying !== undefined)
  const [plain = -1, orphaned = -1] = world.ownedBy('w-1')
  const before = [plain, orphaned].map((partition) => world.generation(partition))
  // Work in flight holds both drains open.
  const holds = [plain, orphaned].map((partition) => world.resource.hold('apply', partition))
  await world.until(() => holds.every((hold) => hold.waiting().length > 0), {
    ...SOON,
    what: 'work in flight',
  })
  const moves = [await serve.move(plain, 'w-2'), await serve.move(orphaned, 'w-3')]
  const moveOf = (partition: number) => {
    const record = world.now().records.get(partition)
    return record?.phase === 'revoking' ? record.move : null
  }
  await world.until(() => moveOf(plain) !== null && moveOf(orphaned) !== null, {
    ...SOON,
    what: 'both revoked',
  })

  await serve.process.kill()
  // Of one move the target dies too, so that somebody must name another.
  dying.signal('SIGKILL')
  const successor = await world.startServe()
  await world.until(() => ![null, 'w-3'].includes(moveOf(orphaned)?.to ?? null), {
    ...SOON,
    what: 'the successor names another target',
  })
  const target = moveOf(orphaned)?.to ?? ''
  assert.deepEqual([world.owners()[plain], world.owners()[orphaned]], ['w-1', 'w-1'])
  for (const hold of holds) hold.letGo()
  await world.until(() => moveOf(plain) === null && moveOf(orphaned) === null, {
    ...SOON,
    what: 'both moves ended',
  })
  assert.deepEqual([world.owners()[plain], world.owners()[orphaned]], ['w-2', target])
  assert.deepEqual(
    [plain, orphaned].map((partition) => world.generation(partition)),
    before.map((generation) => generation + 1),
  )
  for (const { id } of moves) {
    await world.until(async () => (await successor.rebalance(id)).finishedAtMs !== null, {
      ...SOON,
      what: `rebalance ${id} is over`,
    })
  }
  assert.equal((await successor.rebalance(moves[0]?.id ?? '')).state, 'done')
  await world.progress()
  assert.deepEqual(workers[0]?.said('lost'), [])
  await world.assertSound()
})

test('a rebalancer stopped beyond its TTL, its late writes change no record', async (t) => {
  const world = await createWorld(t, { leaseTtlMs: 8000 })
  const counter = await startRequestCounter(t, world.etcd.clientPort)
  const proxy = await startTcpProxy(t, counter.port)
  const zombie = await world.startServe({ etcdEndpoint: proxy.endpoint })
  await world.until(async () => logged(zombie, 'rebalancer-elected'), { ...SOON, what: 'elected' })
  const first = await zombie.leader()
  const successor = await world.startServe()
  await world.startTogether(['w-1', 'w-2'])
  const third = world.startWorker('w-3', { waitsForGo: true })
  await third.started()

  // It plans moves to a newcomer; its writes get as far as the proxy, and it is stopped there.
  proxy.pause('to-server')
  third.send({ type: 'go' })
  await world.until(async () => logged(zombie, 'move-requested'), { ...SOON, what: 'late writes' })
  zombie.process.pause()
  await successor.change('PUT', '/freeze', {})
  await world.until(async () => ![null, first].includes(await successor.leader()), {
    ...SOON,
    what: 'a successor',
  })
  const records = recordsOf(world)
  const requests = counter.count('KV/Txn')
  proxy.resume('to-server')
  await world.until(() => counter.count('KV/Txn') > requests, {
    ...SOON,
    what: 'the late writes arrive',
  })
  zombie.process.resume()
  await world.until(async () => logged(zombie, 'rebalancer-deposed'), {
    ...SOON,
    what: 'the zombie knows',
  })
  await world.progress()
  assert.deepEqual(recordsOf(world), records, 'no record was changed')
  // The one who was elected may: the newcomer gets its share.
  await successor.change('DELETE', '/freeze')
  await world.balancedOver(['w-1', 'w-2', 'w-3'])
  await world.assertSound()
})

async function logged(serve: ServeProcess, event: string): Promise<boolean> {
  return (await serve.log()).includes(`"event":"${event}"`)
}

function recordsOf(world: World) {
  return [...world.now().records].sort(([a], [b]) => a - b)
}
