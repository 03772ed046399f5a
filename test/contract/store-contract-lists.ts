import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actions, expectOk, put, remove } from './store-actions.ts'
import type { WorldOf } from './store-contract.ts'

export function listContract(worldOf: WorldOf): void {
  const start = () => {
    const world = worldOf()
    const prefix = world.freshPrefix()
    return { world, prefix, ...actions(world, world.connect()) }
  }

  test('a list gives the keys under the prefix in order, and says when more follow', async () => {
    const { prefix, write, list } = start()
    const inside = ['p/1', 'p/10', 'p/2', 'p/3']
    await write(...[...inside, 'p', 'p0', 'o/1', 'q/1'].map((name) => put(prefix + name, name)))
    const names = async (limit: number, after?: string) => {
      const rest = after === undefined ? {} : { after: `${prefix}p/${after}` }
      const { value } = expectOk(await list(`${prefix}p/`, limit, rest))
      return [value.entries.map((entry) => entry.value), value.more]
    }
    assert.deepEqual(await names(10), [inside, false])
    assert.deepEqual(await names(4), [inside, false])
    assert.deepEqual(await names(3), [['p/1', 'p/10', 'p/2'], true])
    assert.deepEqual(await names(3, '2'), [['p/3'], false])
    assert.deepEqual(await names(1, '1'), [['p/10'], true])
    assert.deepEqual(await names(3, '11'), [['p/2', 'p/3'], false])
    assert.deepEqual(await names(3, '3'), [[], false])
  })

  test('pages pinned to a revision do not see later changes', async () => {
    const { prefix, write, list, openLease, closeLease } = start()
    const session = await openLease()
    const first = await write(put(`${prefix}a`, '1'), put(`${prefix}b`, '1', session))
    await write(put(`${prefix}aa`, '2'), put(`${prefix}b`, '2'))
    const last = await write(remove(`${prefix}a`))
    const reply = expectOk(await list(prefix, 10, { atRevision: first.revision }))
    const { revision } = first
    assert.deepEqual(reply.value, {
      more: false,
      entries: [
        {
          key: `${prefix}a`,
          value: '1',
          createRevision: revision,
          modRevision: revision,
          session: null,
        },
        { key: `${prefix}b`, value: '1', createRevision: revision, modRevision: revision, session },
      ],
    })
    assert.equal(reply.revision, last.revision)
    const now = expectOk(await list(prefix))
    assert.deepEqual(
      now.value.entries.map((entry) => [entry.key, entry.value, entry.session]),
      [
        [`${prefix}aa`, '2', null],
        [`${prefix}b`, '2', null],
      ],
    )
    await closeLease(session)
  })

  test('a list at a compacted revision says so, one of the future is refused', async () => {
    const { world, prefix, write, list } = start()
    const first = await write(put(`${prefix}a`, '1'))
    const second = await write(put(`${prefix}a`, '2'))
    await world.compact(second.revision)
    const old = await list(prefix, 10, { atRevision: first.revision })
    assert.equal(old.ok ? 'ok' : old.reason, 'compacted')
    const kept = expectOk(await list(prefix, 10, { atRevision: second.revision }))
    assert.equal(kept.value.entries[0]?.value, '2')
    const future = await list(prefix, 10, { atRevision: second.revision + 1_000 })
    assert.equal(future.ok ? 'ok' : future.reason, 'refused')
  })

  test('a summary counts the keys under the prefix and names the newest change among them', async () => {
    const { prefix, write } = start()
    await write(put(`${prefix}s/a`, '1'), put(`${prefix}s/b`, '1'))
    const changed = await write(put(`${prefix}s/a`, '2'))
    await write(put(`${prefix}t`, 'outside'))
    const summary = async (under: string) =>
      (await write({ type: 'summary', prefix: prefix + under })).value.results[0]
    assert.deepEqual(await summary('s/'), {
      type: 'summary',
      count: 2,
      newestModRevision: changed.revision,
    })
    assert.deepEqual(await summary('none/'), { type: 'summary', count: 0, newestModRevision: 0 })
  })
}
