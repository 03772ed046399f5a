/**
 * Plan: six members join one after the other while etcd answers after seconds and watches lag by as much, so
 * that their maps differ when each computes who is to campaign for what. Whatever nobody campaigns for then,
 * because each takes another for its first candidate, must not wait for the turns of second candidates.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestCluster, type TestWorker } from '../../src/testing/index.ts'

const PARTITIONS = 3000
const MEMBERS = 6
/** A third of it is what a second candidate would wait for. */
const LEASE_TTL_MS = 30_000
/** Joins and elections on this store take 4 to 9 s; turns of second candidates made it 24 s. */
const LIMIT_MS = 12_000

for (const seed of [8, 21]) {
  test(`elections, on a slow etcd with joins in between (seed ${seed}), leave nothing to later turns`, async () => {
    const cluster = await createTestCluster({
      ...{ seed, partitions: PARTITIONS },
      settings: { leaseTtlMs: LEASE_TTL_MS, settle: { firstGrantMs: 100 } },
    })
    const workers: TestWorker[] = []
    const beganMs = cluster.clock.monotonicMs()
    for (let index = 1; index <= MEMBERS; index += 1) {
      const worker = await cluster.startWorker(`w${index}`, {})
      worker.store.faults.requestDelay = { minMs: 100, maxMs: 2500 }
      worker.store.faults.watchDelay = { minMs: 10, maxMs: 4000 }
      workers.push(worker)
      await cluster.advance(cluster.random.fraction() * 900)
    }
    const owned = () =>
      workers.reduce((sum, { worker }) => sum + worker.partitions().length, 0) === PARTITIONS
    await cluster.until(owned)
    const tookMs = cluster.clock.monotonicMs() - beganMs
    assert.ok(tookMs < LIMIT_MS, `took ${Math.round(tookMs)} ms`)
    for (const { store } of workers) {
      store.faults.requestDelay = { minMs: 1, maxMs: 2 }
      store.faults.watchDelay = { minMs: 1, maxMs: 2 }
    }
    await cluster.close()
  })
}
