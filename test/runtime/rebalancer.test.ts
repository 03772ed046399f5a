/** The rebalancer's driver: elections, successors, zombies, lost replies, evictions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KEYS, ServedGroupWorld } from './served-group-world.ts'

const BY = { by: 'ann', why: 'because' }

test('of two serve processes one is elected, and balances what a join made uneven', async () => {
  const world = new ServedGroupWorld()
  const one = await world.serve('serve-1')
  const two = await world.serve('serve-2')
  await world.until(() => one.rebalancer.isLeader() || two.rebalancer.isLeader(), 'a leader')
  await world.member('a')
  await world.until(() => world.counts()['a'] === 12, 'a owns all')
  await world.member('b')
  await world.until(() => world.counts()['b'] === 6, 'balanced')
  assert.deepEqual(world.counts(), { a: 6, b: 6 })
  assert.notEqual(one.rebalancer.isLeader(), two.rebalancer.isLeader())
})

test('a rebalancer that closes is succeeded at once, and says so to its listeners', async () => {
  const world = new ServedGroupWorld()
  const one = await world.serve('serve-1')
  const told: boolean[] = []
  one.rebalancer.onLeader((leading) => told.push(leading))
  await world.until(() => one.rebalancer.isLeader(), 'serve-1 leads')
  const two = await world.serve('serve-2')
  await world.clock.run(one.rebalancer.close())
  await world.until(() => two.rebalancer.isLeader(), 'serve-2 leads', 200)
  assert.deepEqual(told, [true, false])
})

test('a rebalancer killed between revoke and grant: the move ends, and a successor makes the rest', async () => {
  const world = new ServedGroupWorld({ budget: { movesInFlight: 2 } })
  const one = await world.serve('serve-1')
  await world.until(() => one.rebalancer.isLeader(), 'serve-1 leads')
  const a = await world.member('a')
  await world.until(() => world.counts()['a'] === 12, 'a owns all')
  a.self.isStuck = true
  await world.member('b')
  await world.until(() => world.revoking() === 2, 'two moves are pending')
  one.clock.kill()
  a.self.isStuck = false
  a.self.drive()
  await world.until(() => world.counts()['b'] === 2, 'both end without a rebalancer', 1000)
  const two = await world.serve('serve-2')
  await world.until(() => two.rebalancer.isLeader(), 'serve-2 leads', 9000)
  await world.until(() => world.counts()['b'] === 6, 'balanced')
})

test('a rebalancer stopped beyond its TTL and resumed changes nothing, and stands by', async () => {
  const world = new ServedGroupWorld()
  const one = await world.serve('serve-1')
  await world.until(() => one.rebalancer.isLeader(), 'serve-1 leads')
  await world.member('a')
  await world.until(() => world.counts()['a'] === 12, 'a owns all')
  await world.member('b')
  // Stopped within the settle delay, so that its plan falls due while it is away.
  await world.clock.advance(500)
  one.clock.pause()
  const two = await world.serve('serve-2')
  await world.until(() => two.rebalancer.isLeader(), 'serve-2 leads')
  await world.until(() => world.counts()['b'] === 6, 'balanced')
  const before = world.etcd.entries(`${KEYS.prefix}partitions/`)
  one.clock.resume()
  await world.clock.advance(5000)
  assert.deepEqual(world.etcd.entries(`${KEYS.prefix}partitions/`), before)
  assert.equal(one.rebalancer.isLeader(), false)
  assert.equal(two.rebalancer.isLeader(), true)
  const deposed = one.events.filter(({ type }) => type === 'rebalancer-deposed')
  assert.equal(deposed.length, 1)
  assert.equal(one.events.filter(({ type }) => type === 'move-requested').length, 0)
})

test('lost replies, executed or not, cost time and neither moves nor the balance', async () => {
  const world = new ServedGroupWorld({ partitions: 60 })
  const one = await world.serve('serve-1')
  await world.until(() => one.rebalancer.isLeader(), 'serve-1 leads')
  await world.member('a')
  await world.until(() => world.counts()['a'] === 60, 'a owns all')
  await world.member('b')
  for (const fault of ['lose-reply', 'drop-request', 'not-executed', 'lose-reply'] as const) {
    one.store.failNext(fault, 'transact')
  }
  await world.until(() => world.counts()['b'] === 30, 'balanced', 60_000)
  await world.clock.advance(10_000)
  assert.deepEqual(world.counts(), { a: 30, b: 30 })
  assert.equal(world.revoking(), 0)
})

test('without a store the rebalancer stops by its deadline, and goes on once it is back', async () => {
  const world = new ServedGroupWorld()
  const one = await world.serve('serve-1')
  await world.until(() => one.rebalancer.isLeader(), 'serve-1 leads')
  world.etcd.setAvailability('no-leader')
  await world.until(() => !one.rebalancer.isLeader(), 'it stopped', 6000)
  world.etcd.setAvailability('up')
  await world.until(() => one.rebalancer.isLeader(), 'it leads again', 20_000)
})

test('a store that went back ends the election, and a new one is held', async () => {
  const world = new ServedGroupWorld()
  const one = await world.serve('serve-1')
  await world.until(() => one.rebalancer.isLeader(), 'serve-1 leads')
  const snapshot = world.etcd.snapshot()
  await world.member('a')
  await world.until(() => world.counts()['a'] === 12, 'a owns all')
  const [before] = one.events.filter((event) => event.type === 'rebalancer-elected')
  world.etcd.restore(snapshot)
  const elections = () => one.events.filter((event) => event.type === 'rebalancer-elected')
  await world.until(() => elections().length === 2 && one.rebalancer.isLeader(), 'anew', 60_000)
  assert.notEqual(elections()[1]?.session, before?.session)
})

test('an eviction asked for by an operator closes the session after T, and others take over', async () => {
  const world = new ServedGroupWorld()
  const one = await world.serve('serve-1')
  await world.until(() => one.rebalancer.isLeader(), 'serve-1 leads')
  const a = await world.member('a')
  await world.until(() => world.counts()['a'] === 12, 'a owns all')
  await world.member('b')
  await world.until(() => world.counts()['b'] === 6, 'balanced')
  // The process is stuck: it does not see its mark, nor close its lease by itself.
  a.clock.pause()
  const markedAtMs = world.clock.monotonicMs()
  const marked = await world.clock.run(one.service.admin.evict(a.member, BY))
  assert.equal(marked.ok, true)
  await world.until(() => world.counts()['b'] === 12, 'b owns all')
  const tookMs = world.clock.monotonicMs() - markedAtMs
  assert.ok(tookMs <= 8000, `${tookMs} ms`)
  const closed = one.events.filter(({ type }) => type === 'eviction-closed')
  assert.equal(closed.length, 1)
})

test('an operator drain, through the service, empties the member and is told as done', async () => {
  const world = new ServedGroupWorld({ settle: { balanceMs: 100 } })
  const one = await world.serve('serve-1')
  await world.until(() => one.rebalancer.isLeader(), 'serve-1 leads')
  const a = await world.member('a')
  await world.member('b')
  await world.member('c')
  await world.until(() => Object.values(world.counts()).every((n) => n === 4), 'balanced')
  const { admin, view } = one.service
  const asked = await world.clock.run(
    admin.requestRebalance({ type: 'drain', member: a.member }, BY, 'd1'),
  )
  assert.equal(asked.ok && asked.value.created, true)
  await world.until(() => view.rebalances()[0]?.state === 'done', 'done')
  assert.deepEqual(world.counts(), { b: 6, c: 6 })
  const states = () =>
    one.events.flatMap((event) => (event.type === 'rebalance-changed' ? [event.state] : []))
  await world.until(() => states().includes('done'), 'told')
  assert.deepEqual(states(), ['requested', 'running', 'done'])
})
