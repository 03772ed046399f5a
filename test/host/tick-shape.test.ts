/** That what is kept is what it is meant to be: an object of the shape that later ticks have as well. */
import assert from 'node:assert/strict'
import { executionAsyncResource } from 'node:async_hooks'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { keepTickShape } from '../../src/host/tick-shape.ts'

setFlagsFromString('--expose-gc')
setFlagsFromString('--allow-natives-syntax')
const collect = runInNewContext('gc') as () => void
const haveSameShape = new Function('a', 'b', 'return %HaveSameMap(a, b)') as (
  a: object,
  b: object,
) => boolean

test('the kept tick keeps the shape of those to come through full collections', async () => {
  const kept = await keepTickShape()
  for (let round = 0; round < 3; round += 1) {
    // Between turns no tick waits.
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    const later = await new Promise<object>((resolve) => {
      process.nextTick(() => resolve(executionAsyncResource()))
    })
    assert.notEqual(later, kept)
    assert.ok(haveSameShape(kept, later))
  }
  assert.equal(haveSameShape(kept, { callback: null, args: undefined }), false)
})

test('one tick is kept for the process', async () => {
  assert.equal(await keepTickShape(), await keepTickShape())
})
