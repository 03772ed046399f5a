/** Plan: a signal asked for before and after it fired, and one that fires twice. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTenureError } from '../../src/core/tenure-error.ts'
import { LateSignal } from '../../src/runtime/late-signal.ts'

const draining = createTenureError('draining', 'given up')
const lost = createTenureError('lost', 'gone')

test('late signal, asked for first, aborts its listeners with the reason', () => {
  const late = new LateSignal()
  const { signal } = late
  let heard = 0
  signal.addEventListener('abort', () => {
    heard += 1
  })
  assert.equal(signal.aborted, false)
  late.fire(() => draining)
  assert.deepEqual([signal.aborted, signal.reason, heard], [true, draining, 1])
  assert.equal(late.signal, signal)
})

test('late signal, asked for after it fired, is aborted with the first reason', () => {
  const late = new LateSignal()
  late.fire(() => draining)
  late.fire(() => lost)
  assert.deepEqual([late.signal.aborted, late.signal.reason], [true, draining])
})

test('late signal, that nobody asked for, makes no reason', () => {
  const late = new LateSignal()
  late.fire(() => assert.fail('a reason was made'))
})
