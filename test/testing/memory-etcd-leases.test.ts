import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionId } from '../../src/core/ids.ts'
import { createEtcdWorld, outcome, transactPut } from './etcd-world.ts'

/** Runs until the lease's key goes, and says how long after now that was. */
async function goneAfterMs(world: ReturnType<typeof createEtcdWorld>): Promise<number> {
  const startedAtMs = world.clock.monotonicMs()
  const isGone = () => world.etcd.entries('leased').length === 0
  assert.equal(await world.clock.runUntil(isGone, { limitMs: 60_000 }), true)
  return world.clock.monotonicMs() - startedAtMs
}

test('a lease runs out between its TTL and half a second later, at a moment the seed decides', async () => {
  const moments: number[] = []
  for (const seed of [1, 2, 3, 3]) {
    const world = createEtcdWorld(seed)
    await world.lease(5_000)
    moments.push(await goneAfterMs(world))
  }
  for (const afterMs of moments) assert.ok(afterMs > 4_990 && afterMs < 5_501, `${afterMs}`)
  assert.equal(new Set(moments).size, 3)
})

test('renewals keep a lease, and it runs out a TTL after the last', async () => {
  const world = createEtcdWorld()
  const session = await world.lease(2_000)
  for (let round = 0; round < 20; round += 1) {
    await world.clock.advance(1_500)
    assert.equal(await world.renew(session), 2_000)
  }
  const afterMs = await goneAfterMs(world)
  assert.ok(afterMs > 1_990 && afterMs < 2_501, `${afterMs}`)
  assert.equal(await world.renew(session), 0)
})

test('a renewal between expiry and its notice waits for the notice and hears that it is too late', async () => {
  const world = createEtcdWorld(5)
  const session = await world.lease(2_000)
  const isExpired = () => (world.etcd.leaseLeftMs(session) ?? 1) <= 0
  assert.equal(await world.clock.runUntil(isExpired, { limitMs: 5_000 }), true)
  assert.equal(world.etcd.entries('leased').length, 1)
  assert.equal(await world.renew(session), 0)
  assert.equal(world.etcd.entries('leased').length, 0)
})

test('a change of leader gives every lease its TTL in full and a second more', async () => {
  const world = createEtcdWorld()
  await world.lease(3_000)
  await world.clock.advance(2_900)
  world.etcd.changeLeader()
  const afterMs = await goneAfterMs(world)
  assert.ok(afterMs >= 4_000 && afterMs < 4_501, `${afterMs}`)
})

test('nothing runs out while there is no quorum, and TTLs start over when it returns', async () => {
  const world = createEtcdWorld()
  await world.lease(2_000)
  world.etcd.setAvailability('no-leader')
  await world.clock.advance(60_000)
  assert.equal(world.etcd.entries('leased').length, 1)
  world.etcd.setAvailability('up')
  const afterMs = await goneAfterMs(world)
  assert.ok(afterMs >= 3_000 && afterMs < 3_501, `${afterMs}`)
})

test('a live lease wrongly revoked is gone at once, its keys in one revision', async () => {
  const world = createEtcdWorld()
  const session = await world.lease(60_000)
  const before = world.etcd.revision()
  world.etcd.revokeLease(session)
  assert.deepEqual([world.truth(), world.etcd.revision()], [[], before + 1])
  assert.equal(await world.renew(session), 0)
})

test('a server that acknowledges dead leases says so only while the quirk is on', async () => {
  const world = createEtcdWorld()
  const session = await world.lease(60_000)
  world.etcd.revokeLease(session)
  world.etcd.acknowledgeDeadLeases(true)
  assert.ok(Number(await world.renew(session)) > 0)
  assert.deepEqual(world.truth(), [])
  world.etcd.acknowledgeDeadLeases(false)
  assert.equal(await world.renew(session), 0)
})

test('a jump of the server clock ends leases early', async () => {
  const world = createEtcdWorld()
  await world.lease(60_000)
  world.etcd.jumpClock(3_600_000)
  assert.ok((await goneAfterMs(world)) < 501)
})

test('NOSPACE refuses puts and new leases, not deletes and renewals', async () => {
  const world = createEtcdWorld()
  const session = await world.lease(60_000)
  world.etcd.setAlarms(['NOSPACE'])
  const { clock, store, random } = world
  assert.equal(outcome(await world.put('a=1')), 'refused')
  assert.equal(
    outcome(await clock.run(store.openLease(random.sessionId(), 5_000, { timeoutMs: 100 }))),
    'refused',
  )
  assert.equal(await world.renew(session), 60_000)
  assert.equal(outcome(await clock.run(transactPut(store, '-leased'))), 'ok')
  const status = await clock.run(store.status({ timeoutMs: 100 }))
  assert.deepEqual(status.ok && status.value.alarms, ['NOSPACE'])
})

test('an election of a while lets nothing run out, then every lease has its TTL in full', async () => {
  for (const requests of ['no-leader', 'stuck'] as const) {
    const { clock, etcd, lease, put } = createEtcdWorld()
    const session = await lease(2_000)
    await clock.advance(1_500)
    etcd.loseLeader({ forMs: 6_000, requests })
    await clock.advance(4_000)
    assert.equal(etcd.availability(), requests)
    assert.equal(
      outcome(await put('k=1')),
      requests === 'stuck' ? 'unknown-outcome' : 'not-executed',
    )
    await clock.runUntil(() => etcd.availability() === 'up', { limitMs: 2_000 })
    assert.equal(etcd.leaseLeftMs(session), 3_000)
  }
})

test('the clock of etcd jumps: all leases are gone at once, renewed or not', async () => {
  const { clock, etcd, lease, renew, truth } = createEtcdWorld()
  const sessions = [await lease(6_000, 'a'), await lease(10_000, 'b')]
  for (const session of sessions) await renew(session)
  etcd.jumpClock(3_600_000)
  await clock.advance(501)
  assert.deepEqual([truth(), await renew(sessions[0] as SessionId)], [[], 0])
})

test('a slow disk delays every write, in order, expiries too; reads and renewals not', async () => {
  const { clock, etcd, store, lease, read, renew, truth } = createEtcdWorld()
  const session = await lease(2_000)
  etcd.setDiskDelay({ minMs: 400, maxMs: 400 })
  const beganAtMs = clock.monotonicMs()
  const writes = ['k=1', 'k=2', 'k=3'].map((line) => transactPut(store, line))
  await clock.advance(100)
  assert.deepEqual(
    [truth(), outcome(await read()), await renew(session)],
    [['leased='], 'ok', 2_000],
  )
  const replies = await clock.run(Promise.all(writes))
  assert.deepEqual(
    [replies.map(outcome), truth()],
    [
      ['ok', 'ok', 'ok'],
      ['k=3', 'leased='],
    ],
  )
  assert.ok(clock.monotonicMs() - beganAtMs >= 400)
  await clock.advance((etcd.leaseLeftMs(session) ?? 0) + 399)
  assert.equal(truth().includes('leased='), true, 'noticed perhaps, yet not on the disk')
  await clock.advance(502)
  assert.equal(truth().includes('leased='), false)
})

test('a write that waits for the disk when the leader goes may be executed later, or be lost', async () => {
  const { clock, etcd, store, truth } = createEtcdWorld()
  etcd.setDiskDelay({ minMs: 200, maxMs: 200 })
  for (let index = 0; index < 30; index += 1) void transactPut(store, `k${index}=1`)
  await clock.advance(100)
  etcd.loseLeader({ forMs: 2_000 })
  await clock.advance(1_000)
  assert.deepEqual(truth(), [])
  await clock.advance(5_000)
  assert.ok(truth().length > 3 && truth().length < 27, `${truth().length} of 30`)
})
