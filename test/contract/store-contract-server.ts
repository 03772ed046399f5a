import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actions, expectOk, put, TIMEOUT, watchInto } from './store-actions.ts'
import type { WorldOf } from './store-contract.ts'

export function serverContract(worldOf: WorldOf): void {
  test('the status names version, size, a known leader and no alarms', async () => {
    const world = worldOf()
    const reply = expectOk(await world.run(world.connect().status(TIMEOUT)))
    assert.match(reply.value.version, /^3\.\d+\.\d+/)
    assert.ok(reply.value.databaseBytes > 0)
    assert.deepEqual([reply.value.leaderKnown, reply.value.alarms], [true, []])
  })

  test('while the server is down every call ends in time as a failure, and works again after', async () => {
    const world = worldOf()
    const store = world.connect()
    const { write, read, openLease, renewLease, closeLease } = actions(world, store)
    const key = `${world.freshPrefix()}a`
    await write(put(key, '1'))
    const session = await openLease(60_000)
    await world.stopServer()
    const startedAtMs = world.nowMs()
    const brief = { timeoutMs: 1_000 }
    const replies = await world.run(
      Promise.all([
        store.transact({ compare: [], success: [put(key, '2')], failure: [] }, brief),
        store.list({ prefix: key, limit: 1 }, brief),
        store.openLease(world.freshSession(), 5_000, brief),
        store.renewLease(session, brief),
        store.closeLease(world.freshSession(), brief),
        store.status(brief),
      ]),
    )
    assert.ok(world.nowMs() - startedAtMs < 3_000, `${world.nowMs() - startedAtMs} ms`)
    for (const reply of replies) {
      assert.ok(!reply.ok && /^(not-executed|unknown-outcome)$/.test(reply.reason))
    }
    await world.startServer()
    await world.eventually('the store answers', async () => {
      return (await world.run(store.list({ prefix: key, limit: 1 }, brief))).ok
    })
    assert.equal((await read(key))?.value, '1')
    assert.equal(await renewLease(session), 60_000)
    await closeLease(session)
  })

  test('a watch breaks with its server, once, and one opened after the last event misses nothing', async () => {
    const world = worldOf()
    const [store, other] = [world.connect(), world.connect()]
    const { write } = actions(world, other)
    const prefix = world.freshPrefix()
    const first = await write(put(`${prefix}a`, '1'))
    const log = watchInto(store, prefix, first.revision)
    await world.eventually('the event arrives', () => log.lines().length === 1)
    await world.stopServer()
    await world.eventually('the watch ends', () => log.ends.length > 0)
    assert.equal(log.ends[0]?.reason, 'broken')
    const refused = watchInto(store, prefix, first.revision + 1)
    await world.eventually('a watch without a server ends', () => refused.ends.length > 0)
    assert.equal(refused.ends[0]?.reason, 'broken')
    await world.startServer()
    await world.eventually('the server answers', async () => {
      const call = other.list({ prefix, limit: 1 }, { timeoutMs: 1_000 })
      return (await world.run(call)).ok
    })
    await write(put(`${prefix}a`, '2'))
    const next = await world.eventually('a new watch hears', async () => {
      const opened = watchInto(store, prefix, first.revision + 1)
      await world.eventually(
        'it hears or ends',
        () => opened.lines().length + opened.ends.length > 0,
      )
      return opened.lines().length > 0 ? opened : null
    })
    assert.deepEqual(next.lines(), [`put ${prefix}a=2`])
    assert.deepEqual([log.ends.length, log.lines().length], [1, 1])
    next.watch.close()
  })

  test('a closed store executes nothing more and its watches fall silent', async () => {
    const world = worldOf()
    const [store, other] = [world.connect(), world.connect()]
    const { write, list } = actions(world, other)
    const prefix = world.freshPrefix()
    const first = await write(put(`${prefix}a`, '1'))
    const log = watchInto(store, prefix, first.revision)
    await world.eventually('the event arrives', () => log.lines().length === 1)
    await world.run(store.close())
    const call = store.transact(
      { compare: [], success: [put(`${prefix}b`, '1')], failure: [] },
      TIMEOUT,
    )
    const reply = await world.run(call)
    assert.equal(reply.ok ? 'ok' : reply.reason, 'not-executed')
    const witness = watchInto(other, prefix, first.revision)
    await write(put(`${prefix}c`, '1'))
    await world.eventually('the witness hears', () => witness.lines().length === 2)
    assert.deepEqual([log.lines().length, log.ends], [1, []])
    assert.equal(expectOk(await list(prefix)).value.entries.length, 2)
    witness.watch.close()
  })
}
