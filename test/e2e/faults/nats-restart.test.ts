/**
 * Plan: NATS is killed, fifty partitions move, NATS comes back. Observers hang on NATS alone: their maps
 * are compared with etcd at the very revision that they claim, entry by entry.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createObserver } from '../../../src/composition/create-observer.ts'
import { recordOwner } from '../../../src/core/partition-record.ts'
import type { Observer } from '../../../src/runtime/observer-types.ts'
import { readRecords } from '../support/group-history.ts'
import { createWorld, GROUP, LONG_TTL, SOON, type World } from '../support/world.ts'

const PARTITIONS = 64
const MOVES = 50
const STALE_AFTER_MS = 1500

test('NATS away, fifty moves complete; back, each observer is right within 3 s', async (t) => {
  const world = await createWorld(t, { partitions: PARTITIONS, ...LONG_TTL })
  const serve = await world.startServe()
  // So that nothing but these moves changes owners.
  await serve.change('PUT', '/freeze', { reason: 'test' })
  const names = ['w-1', 'w-2', 'w-3']
  for (const name of names) world.startWorker(name, { workEveryMs: 500 })
  await world.until(() => world.owners().every((owner) => owner !== null), {
    ...SOON,
    what: 'everything owned',
  })
  const observers = await Promise.all(
    ['observer-1', 'observer-2'].map((name) =>
      createObserver({
        group: GROUP,
        nats: { servers: [world.nats.url], name },
        telemetry: { record: () => {} },
        staleAfterMs: STALE_AFTER_MS,
      }),
    ),
  )
  t.after(() => {
    for (const observer of observers) observer.close()
  })
  await Promise.all(observers.map((observer) => observer.ready))
  await Promise.all(observers.map((observer) => untilRight(world, observer, SOON.timeoutMs)))
  const snapshots = observers.map(({ counters }) => counters.snapshots)

  await world.nats.kill()
  const targets = Array.from({ length: MOVES }, (_, partition) => {
    const owner = world.owners()[partition]
    const others = names.filter((name) => name !== owner && world.now().sessions.has(name))
    return others[partition % others.length] ?? ''
  })
  const generations = targets.map((_, partition) => world.generation(partition))
  for (const [partition, to] of targets.entries()) await serve.move(partition, to)
  await world.until(() => targets.every((to, partition) => world.owners()[partition] === to), {
    ...SOON,
    what: 'fifty moves',
  })
  assert.deepEqual(
    targets.map((_, partition) => world.generation(partition)),
    generations.map((generation) => generation + 1),
  )
  await world.progress()
  await world.until(() => observers.every(({ stale, status }) => stale && status === 'offline'), {
    ...SOON,
    what: 'observers that know how old their maps are',
  })
  for (const observer of observers) {
    assert.ok(observer.ageMs() > STALE_AFTER_MS)
    const { generation } = observer.partition(0)
    assert.equal(generation, generations[0], 'it answers from memory, as of then')
  }

  await world.nats.restart()
  await Promise.all(observers.map((observer) => untilRight(world, observer, 3000)))
  for (const [index, { counters }] of observers.entries()) {
    const more = counters.snapshots - (snapshots[index] ?? 0)
    assert.ok(more <= 1, `${more} snapshots`)
  }
  await world.assertSound()
})

/** Until the observer claims to be in step with a map that shows what was last written. */
async function untilRight(world: World, observer: Observer, timeoutMs: number): Promise<void> {
  const newest = await readRecords(world.store, world.keys)
  await world.until(
    () => {
      const generations = [...newest.records].every(
        ([partition, { generation }]) => observer.partition(partition).generation >= generation,
      )
      return generations && observer.status === 'following' && !observer.stale
    },
    { timeoutMs, what: `the observer in step, ${observer.status}` },
  )
  await assertSameAsEtcd(world, observer)
}

async function assertSameAsEtcd({ store, keys }: World, observer: Observer): Promise<void> {
  const seen = Array.from({ length: PARTITIONS }, (_, partition) => observer.partition(partition))
  const { records } = await readRecords(store, keys, observer.version.revision)
  const expected = seen.map(({ partition }) => {
    const record = records.get(partition)
    assert.ok(record !== undefined)
    const { phase, incarnation, generation } = record
    return { partition, phase, incarnation, generation, owner: recordOwner(record) }
  })
  assert.deepEqual(
    seen.map(({ partition, phase, incarnation, generation, owner }) => {
      const named = owner && { member: owner.member, session: owner.session }
      return { partition, phase, incarnation, generation, owner: named }
    }),
    expected,
  )
}
