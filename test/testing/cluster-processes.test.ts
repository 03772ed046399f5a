/**
 * Plan: the switches of one process, and what becomes of it: stopped processes hear nothing at all,
 * whatever breaks meanwhile; lives are apart; errors that nobody catches end a process and are told;
 * nothing is left behind. And that one seed is one run.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import {
  createTestCluster,
  createVirtualClock,
  type TestCluster,
  type TestProcess,
} from '../../src/testing/index.ts'

const HALF_S = 500

test('a paused process learns nothing of what breaks, until it runs again', async () => {
  const cluster = await createTestCluster({ partitions: 2 })
  const a = await cluster.startWorker('orders-1', {})
  await cluster.advance(3_000)
  const pending = a.store.list({ prefix: '/', limit: 1 }, { timeoutMs: 60_000 })
  let isAnswered = false
  void pending.then(() => {
    isAnswered = true
  })
  a.pause()
  const eventsBefore = a.events.length
  cluster.etcd.restart()
  cluster.nats.stop()
  a.isolate()
  await cluster.advance(60_000)
  a.heal()
  await cluster.advance(1_000)
  assert.deepEqual([a.events.length, isAnswered, a.state], [eventsBefore, false, 'paused'])
  assert.equal(a.broadcast.status(), 'connected', 'it has not looked yet')
  a.resume()
  await cluster.advance(0)
  assert.deepEqual([isAnswered, a.broadcast.status()], [true, 'disconnected'])
  await cluster.close()
})

test('a stalled event loop runs nothing for a while, and then all that came due, at once', async () => {
  const clock = createVirtualClock()
  const process = clock.createProcess()
  const log: string[] = []
  for (const atMs of [100, 900, 1_500]) {
    process.schedule(atMs, () => log.push(`${atMs} at ${clock.monotonicMs()}`))
  }
  process.stall(1_000)
  process.stall(200)
  assert.equal(process.status, 'paused')
  await clock.advance(2_000)
  assert.deepEqual(log, ['100 at 1000', '900 at 1000', '1500 at 1500'])
  assert.equal(process.status, 'running')
})

test('a stall that ends does not end a pause, nor the other way round', async () => {
  const clock = createVirtualClock()
  const process = clock.createProcess()
  let fired = 0
  process.schedule(10, () => {
    fired += 1
  })
  process.stall(100)
  process.pause()
  await clock.advance(200)
  assert.equal(fired, 0)
  process.stall(100)
  process.resume()
  await clock.advance(50)
  assert.equal(fired, 0)
  await clock.advance(50)
  assert.equal(fired, 1)
})

test('a stall beyond the deadline closes the gate at the first look, before anything runs', async () => {
  const cluster = await createTestCluster({ partitions: 1 })
  const outcomes: string[] = []
  const losses: string[] = []
  const a = await cluster.startWorker('orders-1', (process: TestProcess) => ({
    run: async (p) => {
      for (;;) {
        await process.sleep(HALF_S)
        await p.work(() => outcomes.push(`${cluster.clock.monotonicMs()}`))
      }
    },
    lost: (_, __, cause) => void losses.push(cause),
  }))
  await cluster.until(() => outcomes.length === 3)
  const stalledAtMs = cluster.clock.monotonicMs()
  a.stall(20_000)
  await cluster.advance(20_100)
  const inStall = outcomes.map(Number).filter((atMs) => atMs > stalledAtMs)
  assert.deepEqual([losses, inStall], [['deadline'], []])
  await cluster.close()
})

test('an error that nobody catches ends the session, then the process, and is told', async () => {
  const cluster = await createTestCluster({ partitions: 2 })
  const a = await cluster.startWorker('orders-1', (process: TestProcess) => ({
    run: (p) => {
      if (p.id === 1) process.process.schedule(1_000, () => assert.fail('a bug in a timer'))
    },
  }))
  await cluster.startWorker('orders-2', {})
  await cluster.until(() => a.failure !== null)
  await cluster.until(() => cluster.owners().every((owner) => owner === 'orders-2'), {
    limitMs: 1_000,
    what: 'its session is closed at once',
  })
  await cluster.advance(1_000)
  assert.deepEqual([a.failure?.message, a.process.status], ['a bug in a timer', 'killed'])
  await assert.rejects(cluster.close(), /orders-1 died of a bug/)
})

test('settings that do not fit the group end the process with the error, which is no bug', async () => {
  const cluster = await createTestCluster({ partitions: 2 })
  await cluster.startWorker('orders-1', {})
  const b = cluster.spawnWorker('orders-2', { settings: { partitions: 3 } })
  await cluster.until(() => b.state === 'ended')
  assert.match(b.exitError?.message ?? '', /partitions 3, the group has 2/)
  await assert.rejects(b.started, /partitions 3/)
  assert.equal(b.failure, null)
  await cluster.close()
})

test('a second process of one name waits, is refused, and the first goes on', async () => {
  const cluster = await createTestCluster({ partitions: 2 })
  const a = await cluster.startWorker('orders-1', {})
  const double = cluster.spawnWorker('double', { member: 'orders-1' })
  await cluster.until(() => double.state === 'ended')
  assert.match(double.exitError?.message ?? '', /is in use by a live session/)
  assert.deepEqual([a.worker.partitions().length, double.failure], [2, null])
  await cluster.close()
})

test('wall clocks jump one by one and change nothing', async () => {
  const cluster = await createTestCluster({ partitions: 2 })
  const a = await cluster.startWorker('orders-1', {})
  a.process.jumpWall(-3_600_000)
  cluster.clock.jumpWall(7_200_000)
  await cluster.advance(30_000)
  assert.deepEqual(cluster.owners(), ['orders-1', 'orders-1'])
  assert.equal(cluster.record(0)?.generation, 1)
  await cluster.close()
})

test('a condition that does not come true is told with the state of everything', async () => {
  const cluster = await createTestCluster({ partitions: 1 })
  const a = await cluster.startWorker('orders-1', {})
  await cluster.until(() => cluster.owners()[0] === 'orders-1')
  a.pause()
  const waiting = cluster.until(() => false, { limitMs: 20_000, what: 'the impossible' })
  await assert.rejects(waiting, (error: Error) => {
    assert.match(error.message, /not within 20000 virtual ms: the impossible/)
    assert.match(error.message, /partition 0: owned by orders-1 at \d+\.1, no live owner/)
    assert.match(error.message, /orders-1, life 1: paused/)
    return true
  })
  await cluster.close()
})

test('serve processes and observers die and return too, each life with parts of its own', async () => {
  const cluster = await createTestCluster({ partitions: 2 })
  await cluster.startWorker('orders-1', {})
  const one = await cluster.startServe('serve-1')
  await cluster.until(() => one.isLeader())
  const two = await cluster.startServe('serve-2')
  const router = cluster.createObserver('router-1')
  await cluster.until(() => router.observer.status === 'following')
  const [firstObserver, firstView] = [router.observer, one.view]
  one.kill()
  await cluster.until(() => two.isLeader(), { limitMs: 8_000 })
  await one.restart()
  await router.restart()
  await cluster.until(() => router.observer.status === 'following')
  assert.deepEqual([one.isLeader(), one.life, router.life], [false, 2, 2])
  assert.notEqual(router.observer, firstObserver)
  assert.notEqual(one.view, firstView)
  assert.equal(one.view.partition(0).owner?.member, 'orders-1')
  const freeze = await cluster.run(two.admin.setFreeze({ by: 'ann', why: 'deploy', untilMs: null }))
  assert.equal(freeze.ok, true)
  await cluster.until(() => one.view.summary().frozen !== null)
  await router.stop()
  assert.equal(router.state, 'ended')
  await cluster.close()
})

test('a healed cluster recovers from all of it at once, and what is dead stays dead', async () => {
  const cluster = await createTestCluster({ partitions: 4 })
  const [a, b, dead] = ['a', 'b', 'dead'].map((name) => cluster.spawnWorker(name, {}))
  assert.ok(a && b && dead)
  await cluster.until(() => cluster.owners().length === 4 && !cluster.owners().includes(null))
  dead.kill()
  a.pause()
  b.isolate('etcd', 'in')
  b.broadcast.disconnect()
  b.store.faults.dropRequestChance = 1
  a.store.disconnect()
  cluster.nats.stop()
  cluster.etcd.setAvailability('stuck')
  await cluster.advance(20_000)
  assert.equal(b.worker.partitions().length, 0)
  cluster.heal()
  // L4: 2T + 5 s.
  await cluster.until(() => cluster.owners().every((owner) => owner === 'a' || owner === 'b'), {
    limitMs: 17_000,
  })
  assert.deepEqual([a.state, b.state, dead.state], ['running', 'running', 'killed'])
  await cluster.until(() => b.broadcast.status() === 'connected', { limitMs: 2_000 })
  await cluster.close()
})

test('the history keeps what etcd compacts and what a restore takes back', async () => {
  const cluster = await createTestCluster({ partitions: 1 })
  const a = await cluster.startWorker('orders-1', {})
  await cluster.until(() => cluster.owners()[0] === 'orders-1')
  const snapshot = cluster.etcd.snapshot()
  const changesBefore = cluster.history().length
  await a.stop()
  cluster.etcd.compact()
  cluster.etcd.restore(snapshot)
  await a.restart()
  await cluster.until(
    () => cluster.owners()[0] === 'orders-1' && cluster.record(0)?.generation === 2,
  )
  const changes = cluster.history()
  const restores = new Set(changes.slice(changesBefore).map((change) => change.restores))
  assert.deepEqual([...restores], [0, 1])
  assert.equal(changes.filter(({ restores: after }) => after === 0).at(-1)?.value, null)
  await cluster.close()
})

/** What happens in a minute of kills, pauses, cuts and lost replies, as one hash. */
async function turmoil(seed: number): Promise<{ readonly hash: string; readonly steps: number }> {
  const cluster = await createTestCluster({ seed, partitions: 6, fenced: true })
  const hash = createHash('sha256')
  cluster.onEvent((name, event) => {
    hash.update(`${cluster.clock.monotonicMs()} ${name} ${JSON.stringify(event)}\n`)
  })
  const sealing = (process: TestProcess) => ({
    acquire: (p: { token: Parameters<TestCluster['fence']['seal']>[0] }) =>
      cluster.fence.seal(p.token),
    run: async (p: { draining: AbortSignal }) => {
      while (!p.draining.aborted) await process.sleep(HALF_S)
    },
  })
  const workers = ['a', 'b', 'c'].map((name) => cluster.spawnWorker(name, sealing))
  for (const name of ['serve-1', 'serve-2']) cluster.spawnServe(name)
  cluster.createObserver('router')
  for (const { store } of workers) {
    Object.assign(store.faults, { loseReplyChance: 0.02, executeLateChance: 0.02 })
    store.faults.watchDelay = { minMs: 0, maxMs: 50 }
  }
  const chaos = cluster.random.fork('chaos')
  for (let round = 0; round < 20; round += 1) {
    const worker = workers[chaos.integer(workers.length)]
    const fault = chaos.integer(4)
    if (fault === 0) worker?.respawn()
    if (fault === 1) worker?.stall(chaos.integer(9_000))
    if (fault === 2) worker?.isolate('both', chaos.integer(2) === 0 ? 'in' : 'out')
    if (fault === 3) cluster.etcd.loseLeader({ forMs: chaos.integer(2_000), requests: 'stuck' })
    await cluster.advance(chaos.integer(6_000))
    worker?.heal()
  }
  for (const change of cluster.history()) hash.update(JSON.stringify(change))
  await cluster.close()
  return { hash: hash.digest('hex'), steps: cluster.clock.steps }
}

test('one seed is one run, to the last event and step; another seed is another', async () => {
  const [first, again, other] = [await turmoil(3), await turmoil(3), await turmoil(4)]
  assert.ok(first.steps > 3_000, `${first.steps} steps`)
  assert.deepEqual(again, first)
  assert.notEqual(other.hash, first.hash)
})
