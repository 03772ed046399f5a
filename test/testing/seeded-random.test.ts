import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sessionId } from '../../src/core/ids.ts'
import { createSeededRandom, type SeededRandom } from '../../src/testing/index.ts'

const draws = (random: SeededRandom) => Array.from({ length: 50 }, () => random.fraction())

test('the same seed draws the same numbers, another seed others', () => {
  assert.deepEqual(draws(createSeededRandom(1)), draws(createSeededRandom(1)))
  const seeds = Array.from({ length: 200 }, (_, seed) => createSeededRandom(seed).fraction())
  assert.equal(new Set(seeds).size, 200)
})

test('a fork depends on seed and label alone, not on what was drawn before', () => {
  const random = createSeededRandom('seed')
  const before = draws(random.fork('etcd'))
  draws(random)
  assert.deepEqual(draws(random.fork('etcd')), before)
  assert.notDeepEqual(draws(random.fork('nats')), before)
})

test('fractions and integers cover their range evenly', () => {
  const random = createSeededRandom(3)
  const counts = Array.from({ length: 10 }, () => 0)
  for (let draw = 0; draw < 10_000; draw += 1) {
    const index = random.integer(10)
    counts[index] = (counts[index] ?? 0) + 1
  }
  assert.equal(counts.length, 10)
  for (const count of counts) assert.ok(count > 850 && count < 1_150, String(counts))
})

test('session and operation ids are well formed and do not repeat', () => {
  const random = createSeededRandom(4)
  const sessions = Array.from({ length: 2_000 }, () => sessionId(random.sessionId()))
  assert.equal(new Set(sessions).size, 2_000)
  assert.ok(sessions.some((session) => session.startsWith('7')))
  const operations = Array.from({ length: 2_000 }, () => random.operationId())
  assert.equal(new Set(operations).size, 2_000)
  for (const operation of operations) assert.match(operation, /^[0-9a-f]{16}$/)
})
