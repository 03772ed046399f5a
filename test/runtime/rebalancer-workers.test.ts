/** The rebalancer with real workers: moves under load, turned back, forced, and a successor between. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupName, memberName } from '../../src/core/ids.ts'
import { createWorker } from '../../src/runtime/create-worker.ts'
import { createDeferred } from '../../src/runtime/deferred.ts'
import type { Partition, Worker } from '../../src/runtime/worker-options.ts'
import { createMemoryNats } from '../../src/testing/index.ts'
import { KEYS, ServedGroupWorld } from './served-group-world.ts'

const BY = { by: 'ann', why: 'because' }

class WorkersWorld extends ServedGroupWorld {
  readonly nats = createMemoryNats({ clock: this.clock, random: this.random.fork('nats') })
  /** Grants as they begin: `<partition>@<generation> <member>`. */
  readonly begun: string[] = []
  readonly losses: string[] = []
  /** While it is not resolved, work stays in flight. */
  gate = createDeferred<void>()

  async worker(name: string): Promise<Worker> {
    const clock = this.clock.createProcess()
    const worker = await this.clock.run(
      createWorker<null>({
        ...{ group: groupName('orders'), member: memberName(name), keys: KEYS, clock },
        store: this.etcd.connect(name, { clock }),
        broadcast: this.nats.connect(name, { clock }),
        random: this.random.fork(name),
        telemetry: { record: () => {} },
        orderOf: this.orderOf,
        settings: this.settings,
        signals: false,
        run: async (partition: Partition) => {
          this.begun.push(`${partition.id}@${partition.token.generation} ${name}`)
          await partition.work(() => this.gate.promise).catch(() => {})
        },
        lost: (partition, _, cause) => {
          this.losses.push(`${partition.id}@${partition.token.generation} ${cause}`)
        },
        close: async () => {},
      }),
    )
    await this.clock.run(worker.ready)
    return worker
  }

  async serveLeading(name = 'serve-1') {
    const serve = await this.serve(name)
    await this.until(() => serve.rebalancer.isLeader(), `${name} leads`)
    return serve
  }
}

test('a join, with work in flight everywhere, waits for the drains and then balances', async () => {
  const world = new WorkersWorld()
  await world.serveLeading()
  await world.worker('a')
  await world.until(() => world.counts()['a'] === 12, 'a owns all')
  await world.worker('b')
  await world.until(() => world.revoking() === 6, 'six are asked for')
  await world.clock.advance(5000)
  assert.deepEqual(world.counts(), { a: 12 })
  world.gate.resolve()
  await world.until(() => world.counts()['b'] === 6, 'balanced')
  await world.until(() => world.begun.filter((each) => /@2 b$/.test(each)).length === 6, 'run')
  assert.deepEqual(world.losses, [])
})

test('a move that is cancelled while it drains ends with its owner, at the next generation', async () => {
  const world = new WorkersWorld({ settle: { balanceMs: 60_000 } })
  const { service } = await world.serveLeading()
  await world.worker('a')
  await world.until(() => world.counts()['a'] === 12, 'a owns all')
  await world.worker('b')
  const { admin, view } = service
  const move = { type: 'move', partition: 7, to: memberName('b') } as const
  await world.until(() => view.members().length === 2, 'b is seen')
  assert.equal((await world.clock.run(admin.requestRebalance(move, BY, 'm1'))).ok, true)
  await world.until(() => world.revoking() === 1, 'asked for')
  assert.equal((await world.clock.run(admin.cancelRebalance('m1'))).ok, true)
  await world.until(() => view.partition(7).move?.to === 'a', 'turned back')
  world.gate.resolve()
  await world.until(() => world.begun.includes('7@2 a'), 'granted to itself')
  await world.until(() => view.rebalances()[0]?.state === 'cancelled', 'told')
  assert.deepEqual(world.counts(), { a: 12 })
  assert.deepEqual(world.losses, [])
})

test('an overdue drain, in a fenced group, is forced once, and its owner keeps the rest', async () => {
  const world = new WorkersWorld({ fenced: true, drain: { deadlineMs: 3000 } })
  await world.serveLeading()
  await world.worker('a')
  await world.until(() => world.counts()['a'] === 12, 'a owns all')
  await world.worker('b')
  await world.until(() => world.counts()['b'] === 6, 'forced')
  await world.until(() => world.losses.length === 6, 'lost')
  assert.ok(world.losses.every((loss) => loss.includes('@1 forced')))
  await world.clock.advance(20_000)
  assert.deepEqual(world.counts(), { a: 6, b: 6 })
  assert.equal(new Set(world.begun).size, world.begun.length)
  assert.equal(world.begun.filter((each) => each.includes('@3')).length, 0)
})

test('a drain of a member, its rebalancer killed half way, is finished by the successor', async () => {
  const world = new WorkersWorld({ partitions: 60, budget: { movesInFlight: 6 } })
  world.gate.resolve()
  const one = await world.serveLeading()
  await world.worker('a')
  await world.until(() => world.counts()['a'] === 60, 'a owns all')
  await world.worker('b')
  await world.until(() => one.service.view.members().length === 2, 'b is seen')
  const drain = { type: 'drain', member: memberName('a') } as const
  await world.clock.run(one.service.admin.requestRebalance(drain, BY, 'd1'))
  await world.until(() => (world.counts()['b'] ?? 0) >= 12, 'under way')
  one.clock.kill()
  const two = await world.serve('serve-2')
  await world.until(() => two.service.view.rebalances()[0]?.state === 'done', 'done')
  assert.deepEqual(world.counts(), { b: 60 })
  assert.equal(two.service.view.rebalances()[0]?.moved, 60)
  assert.deepEqual(world.losses, [])
})
