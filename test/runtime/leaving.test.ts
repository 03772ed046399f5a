/**
 * Plan: a worker that leaves hands over all that it holds, also what others grant it while it leaves: it
 * names another member for that too, or the partition would wait for an election.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { createTestCluster } from '../../src/testing/index.ts'

for (const seed of [1, 2, 3, 4]) {
  test(`leaving, while a grant to it is under way (seed ${seed}), hands that over too`, async () => {
    const cluster = await createTestCluster({ partitions: 24, seed })
    const released: (TelemetryEvent & { readonly type: 'released' })[] = []
    cluster.onEvent((name, event) => {
      if (name === 'orders-3' && event.type === 'released') released.push(event)
    })
    await cluster.startServe('serve-1')
    await cluster.startWorker('orders-1', {})
    await cluster.startWorker('orders-2', {})
    await cluster.until(() => !cluster.owners().includes(null))
    const joining = await cluster.startWorker('orders-3', {})
    const held = () => joining.worker.partitions().length
    // Granted at etcd, and it has not heard of it.
    const isUnderWay = () =>
      cluster.owners().filter((owner) => owner === 'orders-3').length > held()
    await cluster.until(() => held() > 0 && isUnderWay())
    await joining.stop()
    assert.ok(released.length > 0)
    assert.deepEqual(
      released.filter(({ to }) => to === null),
      [],
    )
    await cluster.until(() =>
      cluster.owners().every((owner) => owner !== null && owner !== 'orders-3'),
    )
    await cluster.close()
  })
}
