import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Compare } from '../../src/core/transaction.ts'
import { actions, get, nested, put, remove } from './store-actions.ts'
import type { WorldOf } from './store-contract.ts'

export function transactionContract(worldOf: WorldOf): void {
  const start = () => {
    const world = worldOf()
    const prefix = world.freshPrefix()
    return { world, key: (name: string) => prefix + name, ...actions(world, world.connect()) }
  }

  test('each compare, on a key that is absent, plain or under a lease, decides as etcd does', async () => {
    const { key, holds, write, openLease, closeLease, world } = start()
    const session = await openLease()
    const other = world.freshSession()
    await write(put(key('plain'), 'v'), put(key('leased'), 'v', session), put(key('empty'), ''))
    const expected: [Compare, boolean][] = [
      [{ type: 'value-equals', key: key('plain'), value: 'v' }, true],
      [{ type: 'value-equals', key: key('plain'), value: 'w' }, false],
      [{ type: 'value-equals', key: key('none'), value: '' }, false],
      [{ type: 'value-equals', key: key('empty'), value: '' }, true],
      [{ type: 'absent', key: key('none') }, true],
      [{ type: 'absent', key: key('empty') }, false],
      [{ type: 'present', key: key('plain') }, true],
      [{ type: 'present', key: key('none') }, false],
      [{ type: 'lease-equals', key: key('leased'), session }, true],
      [{ type: 'lease-equals', key: key('leased'), session: other }, false],
      [{ type: 'lease-equals', key: key('plain'), session }, false],
      [{ type: 'lease-equals', key: key('none'), session }, false],
      [{ type: 'lease-differs', key: key('leased'), session }, false],
      [{ type: 'lease-differs', key: key('leased'), session: other }, true],
      [{ type: 'lease-differs', key: key('plain'), session }, true],
      [{ type: 'lease-differs', key: key('none'), session }, true],
    ]
    for (const [compare, outcome] of expected) {
      assert.equal(await holds(compare), outcome, JSON.stringify(compare))
    }
    await closeLease(session)
  })

  test('all compares must hold, and the branch not taken does nothing', async () => {
    const { key, decide, read } = start()
    const compare: Compare[] = [
      { type: 'absent', key: key('a') },
      { type: 'present', key: key('b') },
    ]
    const reply = await decide(compare, [put(key('a'), 'yes')], [put(key('b'), 'no')])
    assert.deepEqual(reply.value, { succeeded: false, results: [{ type: 'put' }] })
    assert.equal(await read(key('a')), null)
    assert.equal((await read(key('b')))?.value, 'no')
  })

  test('nested transactions decide one by one, one failing compare leaves its siblings alone', async () => {
    const { key, write, read } = start()
    await write(put(key('b'), 'taken'))
    const claim = (name: string) =>
      nested([{ type: 'absent', key: key(name) }], [put(key(name), 'mine')], [get(key(name))])
    const reply = await write(claim('a'), claim('b'), claim('c'))
    const [a, b, c] = reply.value.results
    assert.deepEqual(a, { type: 'transaction', succeeded: true, results: [{ type: 'put' }] })
    assert.deepEqual(c, a)
    assert.ok(b?.type === 'transaction' && !b.succeeded)
    assert.equal((await read(key('b')))?.value, 'taken')
  })

  test('compares at every depth look at the state before the transaction', async () => {
    const { key, write, read } = start()
    const reply = await write(
      nested([], [put(key('a'), '1')]),
      nested([{ type: 'absent', key: key('a') }], [put(key('saw-absent'), '1')]),
      nested([], [nested([{ type: 'present', key: key('a') }], [put(key('saw-present'), '1')])]),
    )
    assert.equal(reply.ok, true)
    assert.notEqual(await read(key('saw-absent')), null)
    assert.equal(await read(key('saw-present')), null)
  })

  test('reads inside a transaction see the writes before them', async () => {
    const { key, decide } = start()
    const summary = { type: 'summary', prefix: key('') } as const
    const reply = await decide(
      [],
      [summary, nested([], [put(key('a'), '1')]), get(key('a')), summary],
    )
    const { revision } = reply
    const entry = { key: key('a'), value: '1', session: null }
    assert.deepEqual(reply.value.results[0], { type: 'summary', count: 0, newestModRevision: 0 })
    assert.deepEqual(reply.value.results[2], {
      type: 'get',
      found: { ...entry, createRevision: revision, modRevision: revision },
    })
    assert.deepEqual(reply.value.results[3], {
      type: 'summary',
      count: 1,
      newestModRevision: revision,
    })
  })

  test('a writing transaction makes one revision, shared by all its keys', async () => {
    const { key, write, read } = start()
    const first = await write(put(key('a'), '1'), put(key('b'), '1'))
    const second = await write(put(key('b'), '2'), nested([], [put(key('c'), '1')]))
    assert.equal(second.revision, first.revision + 1)
    const at = async (name: string) => {
      const found = await read(key(name))
      return [found?.createRevision, found?.modRevision]
    }
    assert.deepEqual(await at('a'), [first.revision, first.revision])
    assert.deepEqual(await at('b'), [first.revision, second.revision])
    assert.deepEqual(await at('c'), [second.revision, second.revision])
  })

  test('deleting an absent key makes no revision, and a key put again is a new one', async () => {
    const { key, write, read } = start()
    const first = await write(put(key('a'), '1'))
    const none = await write(remove(key('none')))
    assert.deepEqual(none.value.results, [{ type: 'delete', deleted: 0 }])
    assert.equal(none.revision, first.revision)
    const gone = await write(remove(key('a')), remove(key('a')))
    assert.deepEqual(gone.value.results, [
      { type: 'delete', deleted: 1 },
      { type: 'delete', deleted: 0 },
    ])
    assert.equal(gone.revision, first.revision + 1)
    const again = await write(put(key('a'), '2'))
    assert.equal((await read(key('a')))?.createRevision, again.revision)
  })

  test('a put under a dead lease refuses the whole transaction, unless on the path not taken', async () => {
    const { world, key, ask, read } = start()
    const dead = world.freshSession()
    const doomed = nested([], [put(key('b'), '1', dead)])
    const refused = await ask({
      compare: [],
      success: [put(key('a'), '1'), doomed],
      failure: [],
    })
    assert.equal(refused.ok ? 'ok' : refused.reason, 'refused')
    assert.equal(await read(key('a')), null)
    const guarded = nested([{ type: 'present', key: key('none') }], [put(key('b'), '1', dead)])
    const accepted = await ask({
      compare: [],
      success: [put(key('a'), '1'), guarded],
      failure: [],
    })
    assert.equal(accepted.ok, true)
    assert.notEqual(await read(key('a')), null)
  })

  test('keys and values keep every character, and keys are ordered by their bytes', async () => {
    const { key, write, list } = start()
    const names = ['ascii', 'quote"\\', 'ümlaut', '\u{ffee}', '\u{1f511}']
    await write(...names.map((name) => put(key(name), `value of ${name}\n`)))
    const reply = await list(key(''))
    assert.ok(reply.ok)
    assert.deepEqual(
      reply.value.entries.map((entry) => [entry.key, entry.value]),
      names.map((name) => [key(name), `value of ${name}\n`]),
    )
  })
}
