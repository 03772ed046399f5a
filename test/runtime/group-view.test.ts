/**
 * Plan: a group goes through joins, deaths, moves and operators' marks. Whatever a partition's view says, it
 * never says otherwise under the same edition, but for whether it is served, which has a question of its own.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestCluster } from '../../src/testing/index.ts'

const PARTITIONS = 6
const LOOK_MS = 20
const BY = { by: 'ann', why: 'test' }

test('group view, under one edition, says the same of every partition', async () => {
  const cluster = await createTestCluster({
    partitions: PARTITIONS,
    settings: { leaseTtlMs: 4000, settle: { firstGrantMs: 200, balanceMs: 200 } },
  })
  const { view, admin } = await cluster.startServe('serve-1')
  const said = () =>
    Array.from({ length: PARTITIONS }, (_, partition) => {
      const { serving, ...rest } = view.partition(partition)
      assert.equal(serving, view.isServing(partition))
      return JSON.stringify(rest)
    }).join('\n')
  let before = { edition: -1, text: '' }
  let changes = 0
  const watch = async (forMs: number) => {
    for (let passedMs = 0; passedMs < forMs; passedMs += LOOK_MS) {
      await cluster.advance(LOOK_MS)
      const now = { edition: view.edition(), text: view.partitionOf('any') >= 0 ? said() : '' }
      if (now.text !== before.text) {
        changes += 1
        assert.notEqual(now.edition, before.edition, `${before.text}\n${now.text}`)
      }
      before = now
    }
  }
  const a = await cluster.startWorker('a', {})
  await cluster.startWorker('b', {})
  await watch(2_000)
  await cluster.run(admin.setDisabled(2, BY))
  await watch(500)
  await cluster.run(admin.setCordon('b' as never, BY))
  await cluster.run(admin.requestRebalance({ type: 'balance' }, BY))
  await watch(1_000)
  await cluster.run(admin.clearDisabled(2))
  await cluster.startWorker('c', {})
  await watch(3_000)
  a.kill()
  await watch(8_000)
  await cluster.run(admin.raiseIncarnation(BY))
  await watch(2_000)
  assert.ok(changes >= 5, `${changes} changes`)
  await cluster.close()
})
