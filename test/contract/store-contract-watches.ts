import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actions, put, remove, revisionOf, watchInto } from './store-actions.ts'
import type { WorldOf } from './store-contract.ts'

export function watchContract(worldOf: WorldOf): void {
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

  test('a watch gives history from its revision on, then changes as they come, none twice', async () => {
    const { world, prefix, key, store, write } = start()
    await write(put(key('before'), '0'))
    const first = await write(put(key('a'), '1'))
    await write(put(key('a'), '2'), put(key('b'), '2'))
    await write(remove(key('a')))
    const log = watchInto(store, prefix, first.revision)
    await world.eventually('history arrives', () => log.lines().length >= 4)
    await write(put(key('c'), '3'))
    await write(put(key('c'), '4'), remove(key('b')))
    await world.eventually('news arrive', () => log.lines().length >= 7)
    assert.deepEqual(log.lines(), [
      `put ${key('a')}=1`,
      `put ${key('a')}=2`,
      `put ${key('b')}=2`,
      `delete ${key('a')}`,
      `put ${key('c')}=3`,
      `put ${key('c')}=4`,
      `delete ${key('b')}`,
    ])
    log.watch.close()
  })

  test('all events of one revision arrive in one call, revisions ascending', async () => {
    const { world, prefix, key, store, write } = start()
    const base = await write(put(key('start'), ''))
    const log = watchInto(store, prefix, base.revision)
    const rounds = 30
    for (let round = 0; round < rounds; round += 1) {
      const names = Array.from({ length: 1 + (round % 5) * 20 }, (_, index) => `k${index}`)
      await write(...names.map((name) => put(key(name), String(round))))
    }
    const last = `put ${key('k0')}=${rounds - 1}`
    await world.eventually('all rounds arrive', () => log.lines().includes(last))
    let newest = 0
    for (const batch of log.batches) {
      const revisions = batch.map(revisionOf)
      assert.ok((revisions[0] ?? 0) > newest, 'a revision is spread over two calls')
      assert.deepEqual(
        revisions,
        [...revisions].sort((one, other) => one - other),
      )
      newest = revisions.at(-1) ?? newest
    }
    assert.equal(newest, base.revision + rounds)
    log.watch.close()
  })

  test('a put event carries the whole entry, and keys beside the prefix stay out', async () => {
    const { world, key, store, write, openLease, closeLease } = start()
    const session = await openLease()
    const first = await write(put(key('in/a'), '1', session), put(key('in'), 'beside'))
    const second = await write(put(key('in/a'), '2'), put(key('in0'), 'beside'))
    const log = watchInto(store, key('in/'), first.revision)
    await world.eventually('both arrive', () => log.batches.flat().length >= 2)
    const entry = { key: key('in/a'), createRevision: first.revision }
    assert.deepEqual(log.batches.flat(), [
      {
        type: 'put',
        entry: { ...entry, value: '1', modRevision: first.revision, session },
      },
      {
        type: 'put',
        entry: { ...entry, value: '2', modRevision: second.revision, session: null },
      },
    ])
    log.watch.close()
    await closeLease(session)
  })

  test('progress is never reported ahead of the events up to it', async () => {
    const { world, prefix, key, store, write } = start()
    const base = await write(put(key('a'), ''))
    const log = watchInto(store, prefix, base.revision)
    let wrote = 0
    await world.eventually('progress after many writes', async () => {
      if (wrote < 200) await write(put(key('a'), String(wrote)))
      wrote += 1
      return log.progress.some(({ revision }) => revision >= base.revision + 200)
    })
    for (const { revision, newestEvent } of log.progress) {
      assert.ok(newestEvent >= Math.min(revision, base.revision + 200), `${revision}`)
    }
    log.watch.close()
  })

  test('a watch from a revision to come gives nothing earlier', async () => {
    const { world, prefix, key, store, write } = start()
    const base = await write(put(key('a'), '0'))
    const log = watchInto(store, prefix, base.revision + 3)
    for (const value of ['1', '2', '3', '4']) await write(put(key('a'), value))
    await world.eventually('both arrive', () => log.lines().length >= 2)
    assert.deepEqual(log.lines(), [`put ${key('a')}=3`, `put ${key('a')}=4`])
    log.watch.close()
  })

  test('a watch from a compacted revision ends so; the next from there on, and an open one, go on', async () => {
    const { world, prefix, key, store, write } = start()
    const first = await write(put(key('a'), '1'))
    const open = watchInto(store, prefix, first.revision)
    const second = await write(put(key('a'), '2'))
    await world.eventually('both arrive', () => open.lines().length === 2)
    await world.compact(second.revision)
    const late = watchInto(store, prefix, first.revision)
    await world.eventually('the late one ends', () => late.ends.length > 0)
    assert.deepEqual(late.ends, [{ reason: 'compacted', compactRevision: second.revision }])
    assert.deepEqual(late.batches, [])
    const next = watchInto(store, prefix, second.revision + 1)
    await write(put(key('a'), '3'))
    await world.eventually('both hear', () => open.lines().length > 2 && next.lines().length > 0)
    assert.deepEqual(next.lines(), [`put ${key('a')}=3`])
    assert.deepEqual([...open.ends, ...next.ends], [])
    open.watch.close()
    next.watch.close()
  })

  test('a closed watch hears nothing more, its neighbours do', async () => {
    const { world, prefix, key, store, write } = start()
    const base = await write(put(key('a'), '0'))
    const closed = watchInto(store, prefix, base.revision)
    const open = watchInto(store, prefix, base.revision)
    await world.eventually('both arrive', () => closed.lines().length + open.lines().length === 2)
    const heard = closed.progress.length
    closed.watch.close()
    closed.watch.close()
    await write(put(key('a'), '1'))
    await world.eventually('the open one hears', () => open.lines().length === 2)
    assert.equal(closed.lines().length, 1)
    assert.deepEqual([closed.progress.length, closed.ends], [heard, []])
    open.watch.close()
  })
}
