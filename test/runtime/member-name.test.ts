/**
 * Plan: a process starts again under the name of its killed self while etcd changes its leader again and again,
 * each change giving the dead session its TTL anew. (A name whose process lives: e2e/faults/refused-members.)
 */
import { test } from 'node:test'
import { createTestCluster } from '../../src/testing/index.ts'

const LEASE_TTL_MS = 6_000

async function createCluster() {
  const settings = { leaseTtlMs: LEASE_TTL_MS, settle: { firstGrantMs: 100 } }
  return createTestCluster({ partitions: 4, settings })
}

for (const [how, lose] of [
  ['at once', (cluster: Cluster) => cluster.etcd.changeLeader()],
  ['after a while without one', (cluster: Cluster) => cluster.etcd.loseLeader({ forMs: 1_500 })],
] as const) {
  test(`a process that starts again, under leaders that change ${how}, waits its dead self out`, async () => {
    const cluster = await createCluster()
    const first = await cluster.startWorker('w', {})
    await cluster.until(() => first.worker.partitions().length === 4)
    first.kill()
    first.respawn()
    const changes = how === 'at once' ? 2 : 5
    for (let change = 0; change < changes; change += 1) {
      await cluster.advance(LEASE_TTL_MS * 0.7)
      lose(cluster)
    }
    await cluster.until(() => first.state === 'running')
    await cluster.until(() => first.worker.partitions().length === 4)
    await cluster.close()
  })
}

type Cluster = Awaited<ReturnType<typeof createTestCluster>>
