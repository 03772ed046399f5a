import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actions, newestChange, put, remove, TIMEOUT, watchInto } from './store-actions.ts'
import type { WorldOf } from './store-contract.ts'

export function leaseContract(worldOf: WorldOf): void {
  const start = () => {
    const world = worldOf()
    const prefix = world.freshPrefix()
    return {
      world,
      prefix,
      key: (name: string) => prefix + name,
      ...actions(world, world.connect()),
    }
  }

  test('a TTL is granted in whole seconds and no shorter than etcd can keep', async () => {
    const { world, store, closeLease } = start()
    for (const [asked, granted] of [
      [1_000, 2_000],
      [6_000, 6_000],
      [6_100, 7_000],
    ] as const) {
      const session = world.freshSession()
      const reply = await world.run(store.openLease(session, asked, TIMEOUT))
      assert.equal(reply.ok && reply.value.ttlMs, granted)
      await closeLease(session)
    }
  })

  test('a lease id in use is refused', async () => {
    const { world, store, openLease, closeLease } = start()
    const session = await openLease()
    const again = await world.run(store.openLease(session, 60_000, TIMEOUT))
    assert.equal(again.ok ? 'ok' : again.reason, 'refused')
    await closeLease(session)
  })

  test('closing a lease deletes its keys in one revision, and is no failure twice', async () => {
    const { prefix, key, store, write, openLease, closeLease, renewLease, list, world } = start()
    const [session, other] = [await openLease(), await openLease()]
    const names = ['c', 'a', 'b', 'freed', 'moved', 'removed']
    const first = await write(...names.map((name) => put(key(name), name, session)))
    await write(put(key('freed'), 'now without'), put(key('moved'), 'now elsewhere', other))
    await write(remove(key('removed')))
    await closeLease(session)
    await closeLease(session)
    assert.equal(await renewLease(session), 0)
    const left = await list(prefix)
    assert.ok(left.ok)
    assert.deepEqual(
      left.value.entries.map((entry) => [entry.key, entry.session]),
      [
        [key('freed'), null],
        [key('moved'), other],
      ],
    )
    const log = watchInto(store, prefix, first.revision)
    await world.eventually('the deletes arrive', () => log.lines().length >= 12)
    assert.deepEqual(
      newestChange(log).map((event) => event.type === 'delete' && event.key),
      [key('a'), key('b'), key('c')],
    )
    log.watch.close()
    await closeLease(other)
  })

  test('a key put under a lease again stays under it, with its creation kept', async () => {
    const { key, write, read, openLease, closeLease } = start()
    const session = await openLease()
    const first = await write(put(key('a'), '1', session))
    const second = await write(put(key('a'), '2', session))
    assert.deepEqual(await read(key('a')), {
      key: key('a'),
      value: '2',
      createRevision: first.revision,
      modRevision: second.revision,
      session,
    })
    await closeLease(session)
    assert.equal(await read(key('a')), null)
  })

  test('a lease that is not renewed runs out after its TTL and not before', async () => {
    const { world, prefix, key, store, write, openLease, renewLease, holds } = start()
    const openedAtMs = world.nowMs()
    const session = await openLease(2_000)
    const first = await write(put(key('a'), '1', session), put(key('b'), '1', session))
    const log = watchInto(store, prefix, first.revision + 1)
    await world.eventually('the keys go', () => log.batches.length > 0)
    const tookMs = world.nowMs() - openedAtMs
    assert.ok(tookMs >= 1_900 && tookMs < 6_000, `after ${tookMs} ms`)
    assert.deepEqual(log.lines(), [`delete ${key('a')}`, `delete ${key('b')}`])
    assert.equal(newestChange(log).length, 2)
    assert.equal(await renewLease(session), 0)
    assert.equal(await holds({ type: 'lease-differs', key: key('a'), session }), true)
    log.watch.close()
  })

  test('a lease that is renewed outlives its TTL', async () => {
    const { world, key, write, read, openLease, renewLease, closeLease } = start()
    const session = await openLease(2_000)
    await write(put(key('a'), '1', session))
    const openedAtMs = world.nowMs()
    await world.eventually('two TTLs have passed', async () => {
      assert.equal(await renewLease(session), 2_000)
      return world.nowMs() - openedAtMs > 4_000
    })
    assert.equal((await read(key('a')))?.session, session)
    await closeLease(session)
  })
}
