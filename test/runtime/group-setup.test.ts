/** Creating a group: once, whoever comes first, and what becomes of those who disagree. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeGroupConfig } from '../../src/core/group-config.ts'
import { groupName } from '../../src/core/ids.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { ensureGroup } from '../../src/runtime/group-setup.ts'
import {
  createMemoryEtcd,
  createSeededRandom,
  createVirtualClock,
} from '../../src/testing/index.ts'
import { KEYS } from './served-group-world.ts'

function world() {
  const clock = createVirtualClock({ startWallMs: 1_764_440_000_500 })
  const etcd = createMemoryEtcd({ clock, random: createSeededRandom('group setup') })
  const shared = { keys: KEYS, clock, group: groupName('orders') }
  const value = (key: string) => etcd.entries(key)[0]?.value
  return { clock, etcd, shared, value }
}

test('a new group gets its settings, and the time in seconds as its incarnation', async () => {
  const { clock, etcd, shared, value } = world()
  const options = { ...shared, store: etcd.connect('one'), settings: { partitions: 8 } }
  const config = await clock.run(ensureGroup(options))
  assert.equal(config.partitions, 8)
  assert.deepEqual(decodeGroupConfig(value(KEYS.config) ?? ''), config)
  assert.equal(value(KEYS.incarnation), '1764440000')
})

test('of two that come at once, one creates the group and both have the same settings', async () => {
  const { clock, etcd, shared } = world()
  const [one, two] = await clock.run(
    Promise.all([
      ensureGroup({ ...shared, store: etcd.connect('one'), settings: { marginMs: 500 } }),
      ensureGroup({ ...shared, store: etcd.connect('two'), settings: { marginMs: 700 } }),
    ]),
  )
  assert.deepEqual(one, two)
})

test('who comes with other partitions gets an error that names both values', async () => {
  const { clock, etcd, shared } = world()
  const store = etcd.connect('one')
  await clock.run(ensureGroup({ ...shared, store, settings: { partitions: 8 } }))
  await assert.rejects(
    clock.run(ensureGroup({ ...shared, store, settings: { partitions: 16 } })),
    (error) => isTenureError(error, 'config-mismatch') && /16.*8/.test(error.message),
  )
})

test('a group that was created, of which the reply was lost, is found as it was created', async () => {
  const { clock, etcd, shared, value } = world()
  const store = etcd.connect('one')
  store.failNext('lose-reply', 'transact')
  const config = await clock.run(ensureGroup({ ...shared, store, settings: { partitions: 8 } }))
  assert.deepEqual(decodeGroupConfig(value(KEYS.config) ?? ''), config)
  assert.equal(etcd.revision(), 2)
})

test('an incarnation that stands without settings is kept', async () => {
  const { clock, etcd, shared, value } = world()
  const store = etcd.connect('one')
  const put = { type: 'put', key: KEYS.incarnation, value: '1999999999' } as const
  await clock.run(store.transact({ compare: [], success: [put], failure: [] }, { timeoutMs: 1000 }))
  await clock.run(ensureGroup({ ...shared, store, settings: {} }))
  assert.equal(value(KEYS.incarnation), '1999999999')
})

test('a store that cannot be reached is tried until the deadline, then told', async () => {
  const { clock, etcd, shared } = world()
  etcd.setAvailability('down')
  const options = { ...shared, store: etcd.connect('one'), settings: {}, deadlineMs: 5000 }
  const beganMs = clock.monotonicMs()
  await assert.rejects(clock.run(ensureGroup(options)), (error) =>
    isTenureError(error, 'store-unreachable'),
  )
  assert.ok(clock.monotonicMs() - beganMs <= 5000)
  etcd.setAvailability('up')
  await clock.run(ensureGroup(options))
})
