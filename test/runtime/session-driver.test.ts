/** Plan: one session over the in-memory etcd on virtual time; leases, faults, pauses, closing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberName } from '../../src/core/ids.ts'
import type { SessionEnd } from '../../src/core/session.ts'
import { memberSessionKeys } from '../../src/core/session.ts'
import { SessionDriver } from '../../src/runtime/session-driver.ts'
import {
  createMemoryEtcd,
  createSeededRandom,
  createVirtualClock,
} from '../../src/testing/index.ts'
import { KEYS } from './mirror-world.ts'

const T_MS = 6_000
const NAME = memberName('a')
const CALL = { timeoutMs: 1_000 }

function createSessionWorld() {
  const clock = createVirtualClock()
  const random = createSeededRandom(1)
  const etcd = createMemoryEtcd({ clock, random: random.fork('etcd') })
  const process = clock.createProcess()
  const store = etcd.connect('tested', { clock: process })
  const told: string[] = []
  const world = {
    clock,
    etcd,
    process,
    store,
    told,
    ended: null as SessionEnd | null,
    onEnded: () => {},
    holder: () => etcd.entries(KEYS.member(NAME))[0]?.session ?? null,
    open: () =>
      new SessionDriver({
        session: random.sessionId(),
        store,
        clock: process,
        keys: memberSessionKeys(KEYS, NAME),
        value: '{}',
        settings: { ttlMs: T_MS, marginMs: 1_000 },
        listener: {
          opened: () => void told.push('opened'),
          proved: () => void told.push('proved'),
          renewalFailed: () => void told.push('failed'),
          ended: (end) => {
            told.push(`ended: ${end.cause}`)
            world.onEnded()
          },
        },
      }),
    live: async () => {
      const driver = world.open()
      assert.ok(await clock.runUntil(() => driver.isLive, { limitMs: 1_000 }))
      return driver
    },
  }
  return world
}

test('session driver, undisturbed, stays live for ever on one proof each third of T', async () => {
  const world = createSessionWorld()
  const driver = await world.live()
  await world.clock.advance(60_000)
  assert.ok(driver.isLive)
  assert.equal(world.holder(), driver.session)
  const proofs = world.told.filter((line) => line === 'proved').length
  assert.ok(proofs >= 28 && proofs <= 30, `${proofs} proofs in ten times T`)
  assert.ok(driver.deadlineMs - world.clock.monotonicMs() > T_MS / 3)
})

test('session driver, lost claim reply, finds its own key and is live', async () => {
  const world = createSessionWorld()
  world.store.failNext('lose-reply', 'transact')
  const driver = world.open()
  assert.ok(await world.clock.runUntil(() => driver.isLive, { limitMs: 4_000 }))
  assert.equal(world.holder(), driver.session)
})

test('session driver, name taken, ends and leaves the holder alone', async () => {
  const world = createSessionWorld()
  const first = await world.live()
  const second = world.open()
  await world.clock.advance(1_000)
  assert.deepEqual([second.isLive, world.told.at(-1)], [false, 'ended: name-in-use'])
  assert.deepEqual([first.isLive, world.holder()], [true, first.session])
})

test('session driver, cut off, ends by itself before the store drops the lease', async () => {
  const world = createSessionWorld()
  const driver = await world.live()
  world.store.cutOff({ requests: true, replies: true })
  assert.ok(await world.clock.runUntil(() => !driver.isLive, { limitMs: T_MS }))
  assert.equal(world.holder(), driver.session, 'the store dropped it first')
  assert.equal(driver.deadlineMs, Number.NEGATIVE_INFINITY)
  assert.equal(world.told.at(-1), 'ended: deadline')
})

test('session driver, one reply of a round lost, lives on', async () => {
  for (const kind of ['renew-lease', 'transact'] as const) {
    const world = createSessionWorld()
    const driver = await world.live()
    world.store.failNext('lose-reply', kind)
    await world.clock.advance(3 * T_MS)
    assert.ok(driver.isLive, kind)
    assert.equal(world.told.filter((line) => line === 'failed').length, 1)
  }
})

test('session driver, keepalives of a dead lease acknowledged, is ended by the proof', async () => {
  const world = createSessionWorld()
  const driver = await world.live()
  world.etcd.acknowledgeDeadLeases(true)
  world.etcd.revokeLease(driver.session)
  assert.ok(await world.clock.runUntil(() => !driver.isLive, { limitMs: T_MS / 2 }))
  assert.equal(world.told.at(-1), 'ended: session-gone')
})

test('session driver, evicted, is told by its next proof and closes its lease', async () => {
  const world = createSessionWorld()
  const driver = await world.live()
  const key = KEYS.eviction(NAME)
  const { session } = driver
  const mark = { type: 'put', key, value: '{}', session } as const
  const other = world.etcd.connect('rebalancer')
  await world.clock.run(other.transact({ compare: [], success: [mark], failure: [] }, CALL))
  assert.ok(await world.clock.runUntil(() => world.holder() === null, { limitMs: T_MS / 2 }))
  assert.deepEqual([driver.isLive, world.told.at(-1)], [false, 'ended: evicted'])
  assert.deepEqual(world.etcd.entries(key), [], 'the mark goes with the lease')
})

test('session driver, process paused beyond its deadline, is over at the first look', async () => {
  const world = createSessionWorld()
  const driver = await world.live()
  world.process.pause()
  await world.clock.advance(2 * T_MS)
  assert.equal(driver.isLive, false, 'nothing was handled yet, and it says no all the same')
  world.process.resume()
  driver.look()
  assert.equal(world.told.at(-1), 'ended: deadline')
  await world.clock.advance(2 * T_MS)
  assert.equal(driver.isLive, false)
  assert.equal(world.told.at(-1), 'ended: deadline', 'it ended twice or came back')
})

test('session driver, closed, ends locally at once and waits until the lease is gone', async () => {
  const world = createSessionWorld()
  const driver = await world.live()
  const closing = driver.close('closed')
  assert.deepEqual([driver.isLive, driver.deadlineMs], [false, Number.NEGATIVE_INFINITY])
  await world.clock.run(closing)
  assert.equal(world.holder(), null)
})

test('session driver, closed from within its own end, waits for the lease as well', async () => {
  const world = createSessionWorld()
  const driver = await world.live()
  let closed = false
  world.onEnded = () => {
    void driver.close('closed').then(() => {
      closed = true
      assert.equal(world.holder(), null)
    })
  }
  void driver.close('invariant-broken')
  assert.ok(await world.clock.runUntil(() => closed, { limitMs: 1_000 }))
})

test('session driver, closed at any moment, asks for nothing afterwards and leaves no key', async () => {
  for (let closeAfterMs = 0; closeAfterMs < 2_400; closeAfterMs += 0.5) {
    if (closeAfterMs === 4) closeAfterMs = 1_996
    if (closeAfterMs === 2_006) break
    const world = createSessionWorld()
    const driver = world.open()
    await world.clock.advance(closeAfterMs)
    await world.clock.run(driver.close('closed'))
    await world.clock.advance(1_000)
    const asked = { ...world.store.calls }
    await world.clock.advance(2 * T_MS)
    assert.deepEqual(world.store.calls, asked)
    assert.equal(world.holder(), null, `closed after ${closeAfterMs} ms`)
    assert.equal(world.told.filter((line) => line.startsWith('ended')).length, 1)
  }
})
