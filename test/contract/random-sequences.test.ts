/**
 * Plan: the same 500 random sequences of calls on the in-memory store and on etcd must be answered
 * alike, call by call and event by event. A failure names its seed; with TENURE_SEQUENCE_SEED set to
 * it, that sequence runs alone.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { etcdStoreWorld } from './real-worlds.ts'
import { transcribe } from './sequence-transcript.ts'
import { memoryStoreWorld } from './world.ts'

const SEQUENCES = 500
const named = process.env['TENURE_SEQUENCE_SEED']

test('random sequences of calls get the same replies in memory and from etcd', async () => {
  const cleanUps: (() => void | Promise<void>)[] = []
  after(async () => {
    for (const cleanUp of cleanUps.reverse()) await cleanUp()
  })
  const seeds = named === undefined ? [...Array(SEQUENCES).keys()] : [Number(named)]
  const etcd = await etcdStoreWorld({ after: (callback) => cleanUps.push(callback) })
  const expected = await transcribe(etcd, seeds)
  const actual = await transcribe(await memoryStoreWorld(), seeds)
  for (const seed of seeds) {
    const differs = `seed ${seed}: in memory (actual) differs from etcd`
    assert.deepEqual(actual.get(seed), expected.get(seed), differs)
  }
})
