import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clock, orderOf, random } from '../../../src/composition/connections.ts'
import { groupName } from '../../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../../../src/core/keys.ts'
import { partitionOf } from '../../../src/core/partition-key.ts'
import { createEtcdStore } from '../../../src/etcd/etcd-store.ts'
import { Committer } from '../../../src/runtime/committer.ts'
import { ensureGroup } from '../../../src/runtime/group-setup.ts'
import { Mirror } from '../../../src/runtime/mirror.ts'
import { createRebalancer } from '../../../src/runtime/rebalancer.ts'
import type { Worker } from '../../../src/runtime/worker-options.ts'
import { eventually } from '../../support/eventually.ts'
import { startEtcd, startNats } from '../../support/servers.ts'
import { record, serving, startMember } from './members.ts'

const PARTITIONS = 1024
const MEMBERS = 16
const TIMEOUT_MS = 60_000

// Plan: sixteen members join at once, with a rebalancer to even out what elections left uneven; then one
// leaves. What moves is counted against the minimum.
test('16 members join 1,024 partitions at once: balanced, and a leave moves no more than it must', async (t) => {
  const etcd = await startEtcd(t)
  const nats = await startNats(t)
  const group = groupName('sixteen')
  const keys = groupKeys(DEFAULT_KEY_PREFIX, group)
  const store = createEtcdStore({ endpoints: [etcd.endpoint] })
  t.after(() => store.close())
  const settings = { partitions: PARTITIONS, leaseTtlMs: 10_000, marginMs: 2000 }
  await ensureGroup({ store, keys, clock, group, settings })
  const telemetry = record()
  const mirror = new Mirror({ group, keys, store, clock, random, telemetry })
  t.after(() => mirror.close())
  await mirror.ready
  const committer = new Committer({ store, keys, clock, timeoutMs: 3000 })
  const shared = { group, keys, store, clock, random, telemetry, mirror, committer, orderOf }
  const rebalancer = createRebalancer(shared)
  t.after(() => rebalancer.close())

  const worked = new Map<number, number>()
  const workers = await Promise.all(
    Array.from({ length: MEMBERS }, (_, index) =>
      startMember({
        ...{ group, settings, telemetry, worked, etcd: etcd.endpoint, nats: nats.url },
        member: `m-${String(index).padStart(2, '0')}`,
      }),
    ),
  )
  t.after(() => Promise.all(workers.map((worker) => worker.stop({ force: true }).catch(() => {}))))
  const share = PARTITIONS / MEMBERS
  await eventually(
    () =>
      serving(...workers) === PARTITIONS && workers.every((worker) => serving(worker) === share),
    { timeoutMs: TIMEOUT_MS, what: `${share} partitions served by each member` },
  )
  assert.equal(telemetry.counts.get('lost') ?? 0, 0)

  const [leaver, ...stayers] = workers
  assert.ok(leaver)
  // A leaver plans on its own map; on a slow machine that may trail what the others already serve.
  await eventually(() => knowsEveryOwner(leaver), {
    timeoutMs: TIMEOUT_MS,
    what: 'the leaver to know every owner',
  })
  const generations = () =>
    Array.from({ length: PARTITIONS }, (_, p) => mirror.state.record(p)?.record.generation ?? 0)
  const before = generations()
  await leaver.stop()
  await eventually(() => serving(...stayers) === PARTITIONS, {
    timeoutMs: TIMEOUT_MS,
    what: 'everything served by those who stay',
  })
  await eventually(() => mirror.state.members.size === MEMBERS - 1, {
    timeoutMs: TIMEOUT_MS,
    what: 'the leaver gone from the map',
  })
  const counts = stayers.map((worker) => serving(worker))
  assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, `counts ${counts}`)
  const moved = generations().filter((generation, p) => generation !== before[p]).length
  assert.equal(moved, share, 'only what the leaver held has moved')
  assert.equal(telemetry.counts.get('lost') ?? 0, 0)
})

/** Asks the worker's own map, through keys that fall on every partition. */
async function knowsEveryOwner(worker: Worker): Promise<boolean> {
  const partitions = new Set<number>()
  for (let number = 0; partitions.size < PARTITIONS; number += 1) {
    const key = `key-${number}`
    const partition = partitionOf(key, PARTITIONS)
    if (partitions.has(partition)) continue
    partitions.add(partition)
    const outcome = await worker.work(key, () => true)
    if (!outcome.ok && outcome.owner === null) return false
  }
  return true
}
