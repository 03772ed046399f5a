import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CALL, createEtcdWorld, outcome, transactPut } from './etcd-world.ts'

test('a dropped request is not executed, a lost reply is; both end unknown at the timeout', async () => {
  const { clock, store, put, truth } = createEtcdWorld()
  store.failNext('drop-request', 'transact')
  store.failNext('lose-reply')
  assert.equal(outcome(await put('dropped=1')), 'unknown-outcome')
  assert.equal(clock.monotonicMs(), CALL.timeoutMs)
  assert.equal(outcome(await put('lost=1')), 'unknown-outcome')
  assert.equal(outcome(await put('fine=1')), 'ok')
  assert.deepEqual(truth(), ['fine=1', 'lost=1'])
})

test('a late request is executed only after its call has ended', async () => {
  const { clock, store, put, truth } = createEtcdWorld()
  store.failNext('execute-late', 'transact')
  assert.equal(outcome(await put('late=1')), 'unknown-outcome')
  assert.deepEqual(truth(), [])
  await clock.advance(store.faults.lateMsMax + 1)
  assert.deepEqual(truth(), ['late=1'])
})

test('an ordered fault waits for a call of its kind', async () => {
  const { store, put, read } = createEtcdWorld()
  store.failNext('not-executed', 'transact')
  assert.equal(outcome(await read()), 'ok')
  assert.equal(outcome(await put('a=1')), 'not-executed')
  assert.equal(outcome(await put('a=1')), 'ok')
  assert.deepEqual([store.calls.transact, store.calls.list], [2, 1])
})

test('chances decide by the seed: about that share of the calls, the same ones each time', async () => {
  const outcomes = async (seed: number) => {
    const { store, put } = createEtcdWorld(seed)
    Object.assign(store.faults, { dropRequestChance: 0.2, loseReplyChance: 0.2 })
    const results: string[] = []
    for (let call = 0; call < 200; call += 1) results.push(outcome(await put(`a=${call}`)))
    return results
  }
  const [first, second] = [await outcomes(8), await outcomes(9)]
  const failed = first.filter((result) => result === 'unknown-outcome').length
  assert.ok(failed > 50 && failed < 110, `${failed} of 200`)
  assert.deepEqual(await outcomes(8), first)
  assert.notDeepEqual(second, first)
})

test('a disconnect ends calls under way as unknown, refuses new ones, and heals', async () => {
  const { clock, store, put, truth } = createEtcdWorld()
  store.faults.requestDelay = { minMs: 50, maxMs: 50 }
  const underWay = transactPut(store, 'sent=1')
  await clock.advance(10)
  store.disconnect()
  assert.equal(outcome(await clock.run(underWay)), 'unknown-outcome')
  assert.equal(clock.monotonicMs(), 10)
  assert.equal(outcome(await put('refused=1')), 'not-executed')
  // What had been sent is executed all the same.
  assert.deepEqual(truth(), ['sent=1'])
  store.reconnect()
  assert.equal(outcome(await put('again=1')), 'ok')
})

test('a request on its way to a server that restarts is never executed', async () => {
  const { clock, etcd, store, truth } = createEtcdWorld()
  store.faults.requestDelay = { minMs: 50, maxMs: 50 }
  const underWay = transactPut(store, 'sent=1')
  await clock.advance(10)
  etcd.restart()
  assert.equal(outcome(await clock.run(underWay)), 'unknown-outcome')
  await clock.advance(10_000)
  assert.deepEqual(truth(), [])
})

test('a cut in one direction loses requests, in the other replies, and only of this client', async () => {
  const { store, put, write, truth } = createEtcdWorld()
  store.cutOff({ requests: true, replies: false })
  assert.equal(outcome(await put('no=1')), 'unknown-outcome')
  store.cutOff({ requests: false, replies: true })
  assert.equal(outcome(await put('yes=1')), 'unknown-outcome')
  await write('other=1')
  assert.deepEqual(truth(), ['other=1', 'yes=1'])
  store.heal()
  assert.equal(outcome(await put('healed=1')), 'ok')
})

test('without a leader calls are refused as not executed; the status still answers', async () => {
  const { clock, etcd, store, put } = createEtcdWorld()
  etcd.setAvailability('no-leader')
  assert.equal(outcome(await put('a=1')), 'not-executed')
  const status = await clock.run(store.status(CALL))
  assert.ok(status.ok)
  assert.equal(status.value.leaderKnown, false)
  etcd.setAvailability('down')
  assert.equal(outcome(await clock.run(store.status(CALL))), 'not-executed')
  etcd.setAvailability('up')
  assert.equal(outcome(await put('a=1')), 'ok')
})

test('requests stuck without a quorum end unknown, and some of them are executed in the end', async () => {
  const { clock, etcd, store, truth } = createEtcdWorld()
  etcd.setAvailability('stuck')
  const calls = Array.from({ length: 40 }, (_, index) => transactPut(store, `k${index}=1`))
  const replies = await clock.run(Promise.all(calls))
  assert.deepEqual(new Set(replies.map(outcome)), new Set(['unknown-outcome']))
  assert.deepEqual(truth(), [])
  etcd.setAvailability('up')
  await clock.advance(10)
  assert.ok(truth().length > 5 && truth().length < 35, `${truth().length} of 40`)
})

test('frozen reads see the past, header included; writing transactions see the present', async () => {
  const { clock, etcd, store, write, read } = createEtcdWorld()
  await write('a=old')
  const frozen = etcd.revision()
  store.freezeReads()
  await write('a=new', 'b=new')
  const stale = await read()
  assert.ok(stale.ok)
  assert.deepEqual(
    [stale.revision, stale.value.entries.map((entry) => entry.value)],
    [frozen, ['old']],
  )
  const check = { type: 'value-equals', key: 'a', value: 'old' } as const
  const decide = async (success: Parameters<typeof store.transact>[0]['success']) => {
    const reply = await clock.run(store.transact({ compare: [check], success, failure: [] }, CALL))
    return reply.ok && reply.value.succeeded
  }
  assert.equal(await decide([{ type: 'get', key: 'a' }]), true)
  assert.equal(await decide([{ type: 'delete', key: 'never' }]), false)
  store.thawReads()
  assert.equal(await decide([{ type: 'get', key: 'a' }]), false)
})

test('stale reads by chance go back no further than allowed', async () => {
  const { etcd, store, write, read } = createEtcdWorld()
  for (let value = 0; value < 20; value += 1) await write(`a=${value}`)
  Object.assign(store.faults, { staleReadChance: 0.5, staleRevisionsMax: 3 })
  const backs = new Set<number>()
  for (let call = 0; call < 100; call += 1) {
    const reply = await read()
    assert.ok(reply.ok)
    assert.equal(reply.value.entries[0]?.modRevision, reply.revision)
    backs.add(etcd.revision() - reply.revision)
  }
  assert.deepEqual([...backs].sort(), [0, 1, 2, 3])
})

test('a paused process gets its reply when it runs again, or its timeout if that came first', async () => {
  const { clock, etcd, truth } = createEtcdWorld()
  const process = clock.createProcess()
  const store = etcd.connect('paused', { clock: process })
  const brief = transactPut(store, 'brief=1')
  process.pause()
  await clock.advance(100)
  assert.deepEqual(truth(), ['brief=1'])
  process.resume()
  assert.equal(outcome(await clock.run(brief)), 'ok')
  store.failNext('lose-reply')
  const long = transactPut(store, 'long=1')
  process.pause()
  await clock.advance(10_000)
  process.resume()
  assert.equal(outcome(await clock.run(long)), 'unknown-outcome')
})
