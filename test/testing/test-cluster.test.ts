/**
 * Plan: what the author of a worker tests with the kit, each as a story in virtual time: the drain of a
 * planned move, a lost lease, a restart, a paused owner's late write, a SIGTERM, an etcd that is away.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberName } from '../../src/core/ids.ts'
import { partitionOf } from '../../src/core/partition-key.ts'
import {
  createTestCluster,
  type TestCluster,
  type TestProcess,
  type TestWorkerOptions,
} from '../../src/testing/index.ts'

const BY = { by: 'ann', why: 'because' }

/** Notes each call of a handler as `<member> <what> <partition>@<generation>`; work takes `workMs`. */
function noting(log: string[], cluster: TestCluster, workMs = 100) {
  return (process: TestProcess): TestWorkerOptions<string> => {
    const note = (what: string, { id, token }: { id: number; token: { generation: number } }) =>
      log.push(`${process.name} ${what} ${id}@${token.generation}`)
    return {
      acquire: async (p) => {
        note('acquire', p)
        await cluster.fence.seal(p.token)
        return 'cursor'
      },
      run: async (p) => {
        while (!p.draining.aborted) {
          await p.work(async () => {
            await process.sleep(workMs)
            await cluster.fence.guard(p.token, () => {})
          })
        }
        note('idle', p)
      },
      release: (p) => void note('release', p),
      lost: (p, _, cause) => void note(`lost:${cause}`, p),
    }
  }
}

function owned(cluster: TestCluster, member: string): number {
  return cluster.owners().filter((owner) => owner === member).length
}

test('a planned move drains the old owner before the new one acquires, a generation higher', async () => {
  const cluster = await createTestCluster({
    partitions: 4,
    settings: { settle: { balanceMs: 60_000 } },
  })
  const log: string[] = []
  const serve = await cluster.startServe('serve-1')
  await cluster.startWorker('orders-1', noting(log, cluster, 300))
  await cluster.until(() => owned(cluster, 'orders-1') === 4)
  await cluster.startWorker('orders-2', noting(log, cluster))
  log.length = 0
  const move = { type: 'move', partition: 2, to: memberName('orders-2') } as const
  await cluster.until(() => serve.view.members().length === 2)
  assert.equal((await cluster.run(serve.admin.requestRebalance(move, BY))).ok, true)
  await cluster.until(() => log.includes('orders-2 acquire 2@2'))
  assert.deepEqual(log, ['orders-1 idle 2@1', 'orders-1 release 2@1', 'orders-2 acquire 2@2'])
  assert.equal(cluster.owners()[2], 'orders-2')
  await cluster.close()
})

test('a lease that etcd drops is told as lost, with the cause, and the partitions come back', async () => {
  const cluster = await createTestCluster({ partitions: 2 })
  const log: string[] = []
  const a = await cluster.startWorker('orders-1', noting(log, cluster))
  await cluster.until(() => log.length === 2)
  const session = cluster.members().get('orders-1')
  assert.ok(session)
  cluster.etcd.revokeLease(session)
  await cluster.until(() => log.filter((line) => line.includes('@2')).length === 2)
  const losses = log.filter((line) => line.includes('lost')).sort()
  assert.deepEqual(losses, ['orders-1 lost:session-gone 0@1', 'orders-1 lost:session-gone 1@1'])
  assert.deepEqual([a.life, a.state, a.worker.partitions().length], [1, 'running', 2])
  await cluster.close()
})

test('a worker that restarts within the grace gets its own partitions back, and nobody else does', async () => {
  const cluster = await createTestCluster({ partitions: 6, settings: { restartGraceMs: 20_000 } })
  const log: string[] = []
  await cluster.startServe('serve-1')
  const a = await cluster.startWorker('orders-1', noting(log, cluster))
  const b = await cluster.startWorker('orders-2', noting(log, cluster))
  await cluster.until(() => owned(cluster, 'orders-1') === 3 && owned(cluster, 'orders-2') === 3)
  const before = cluster.owners()
  await a.stop()
  assert.deepEqual([a.state, owned(cluster, 'orders-1')], ['ended', 0])
  await cluster.advance(2_000)
  await a.restart()
  await cluster.until(() => owned(cluster, 'orders-1') === 3)
  assert.deepEqual(cluster.owners(), before)
  assert.equal(b.worker.partitions().length, 3)
  assert.equal(a.life, 2)
  await cluster.close()
})

test('a killed worker is replaced within T and a second; the survivor acquires what it had', async () => {
  const cluster = await createTestCluster({ partitions: 4, settings: { leaseTtlMs: 4_000 } })
  const log: string[] = []
  const a = await cluster.startWorker('orders-1', noting(log, cluster))
  await cluster.until(() => owned(cluster, 'orders-1') === 4)
  await cluster.startWorker('orders-2', noting(log, cluster))
  const killedAtMs = cluster.clock.monotonicMs()
  a.kill()
  await cluster.until(() => log.filter((line) => line.startsWith('orders-2 acquire')).length === 4)
  assert.ok(cluster.clock.monotonicMs() - killedAtMs <= 5_000, 'L1')
  assert.equal(log.filter((line) => /orders-1 (lost|release)/.test(line)).length, 0)
  await cluster.close()
})

test("a paused owner's late write is refused by the fence once the next owner has sealed", async () => {
  const cluster = await createTestCluster({ partitions: 1, fenced: true })
  const log: string[] = []
  const a = await cluster.startWorker('orders-1', noting(log, cluster))
  await cluster.until(() => cluster.fence.accepted.length > 0)
  const [held] = a.worker.partitions()
  assert.ok(held)
  const late = cluster.fence.begin(held.token, () => assert.fail('a late write was done'), 'late')
  a.pause()
  await cluster.startWorker('orders-2', noting(log, cluster))
  await cluster.until(() => log.includes('orders-2 acquire 0@2'))
  assert.deepEqual(
    [late.land().ok, cluster.fence.refused.map(({ note, reason }) => `${note} ${reason}`)],
    [false, ['late stale']],
  )
  a.resume()
  await cluster.until(() => log.includes('orders-1 lost:deadline 0@1'))
  const writers = cluster.fence.accepted.map(({ token }) => token.generation)
  assert.deepEqual(writers, [...writers].sort(), 'accepted generations never go back')
  await cluster.close()
})

test('SIGTERM hands everything over, drained, and the process is done', async () => {
  const cluster = await createTestCluster({ partitions: 3 })
  const log: string[] = []
  const a = await cluster.startWorker('orders-1', noting(log, cluster))
  await cluster.until(() => owned(cluster, 'orders-1') === 3)
  await cluster.startWorker('orders-2', noting(log, cluster))
  await a.stop()
  assert.deepEqual([a.state, a.exitError, owned(cluster, 'orders-2')], ['ended', null, 3])
  assert.equal(log.filter((line) => line.startsWith('orders-1 release')).length, 3)
  assert.equal(log.filter((line) => line.includes('lost')).length, 0)
  await cluster.close()
})

test('a worker started while etcd is away starts when it comes back', async () => {
  const cluster = await createTestCluster({ partitions: 2 })
  cluster.etcd.setAvailability('down')
  const a = cluster.spawnWorker('orders-1', {})
  await cluster.advance(10_000)
  assert.equal(a.state, 'starting')
  assert.throws(() => a.worker, /orders-1 has not started/)
  cluster.etcd.setAvailability('up')
  await cluster.until(() => a.state === 'running' && a.worker.partitions().length === 2)
  await cluster.close()
})

test('keyed work runs at the owner and is pointed to it elsewhere', async () => {
  const cluster = await createTestCluster({ partitions: 4 })
  await cluster.startServe('serve-1')
  const a = await cluster.startWorker('orders-1', { address: '10.0.0.1:80' })
  const b = await cluster.startWorker('orders-2', { address: '10.0.0.2:80' })
  const router = cluster.createObserver('router-1')
  await cluster.until(() => owned(cluster, 'orders-1') === 2 && owned(cluster, 'orders-2') === 2)
  await cluster.until(() => router.observer.owner('ann')?.serving === true)
  const [here, there] = cluster.owners()[partitionOf('ann', 4)] === 'orders-1' ? [a, b] : [b, a]
  assert.deepEqual(await cluster.run(here.worker.work('ann', () => 'done')), {
    ok: true,
    value: 'done',
  })
  const elsewhere = await cluster.run(there.worker.work('ann', () => 'never'))
  assert.ok(!elsewhere.ok)
  assert.equal(elsewhere.owner?.member, here.name)
  assert.equal(router.observer.owner('ann')?.member, here.name)
  await cluster.close()
})
