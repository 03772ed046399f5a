/**
 * Plan: the model at its smallest scope, each configuration to its end: no reachable state or step breaks a
 * promise, and from each one healing leads back to an owner that serves. And the search itself: it finds
 * what is broken, and counts what hash compaction may have hidden.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configurationsOf } from './configurations.ts'
import { reportOf, violationText } from './report.ts'
import { search } from './search.ts'
import { settingsOf } from './settings.ts'
import { Visited } from './visited.ts'

for (const configuration of configurationsOf('smallest')) {
  const { name, settings, liveness } = configuration
  test(`${name}: no promise is broken and nothing is stuck`, (t) => {
    const found = search(settings, { liveness })
    t.diagnostic(`${found.states} states, depth ${found.depth}`)
    assert.equal(violationText(reportOf(configuration, found)), '')
    assert.ok(found.states > 100, 'the configuration has something to search')
  })
}

test('an author who reads before all resources are sealed breaks S7, by the shortest trace', () => {
  const settings = settingsOf(
    { work: 1, drops: 1 },
    { fenced: true, honest: false, resources: 2, sealsBeforeRead: 1 },
  )
  const { violation } = search(settings, { liveness: false })
  assert.equal(violation?.promise, 'S7')
  assert.deepEqual(violation?.trace, [
    'a: work begins (p0)',
    'store: drops the live session of a',
    'b: campaigns (p0)',
    'b: owned 1.2 (p0) done',
    'b: seals resource 0: raise',
    'b: acquired (p0)',
    'a: writes to resource 1: accept',
  ])
})

test('a bound on commits that is too low is found to be broken', () => {
  const settings = settingsOf({ failures: 2, late: 1 }, { start: 'empty', commitsMax: 1 })
  assert.equal(search(settings, { liveness: false }).violation?.promise, 'recovery')
})

test('the set of states tells rows apart and knows them again, across its growth', () => {
  const visited = new Visited(1 << 4)
  const rows = Array.from({ length: 20_000 }, (_, at) => Int32Array.of(at & 7, at >> 3, at % 11))
  for (const [at, row] of rows.entries()) assert.equal(visited.add(row), at)
  for (const [at, row] of rows.entries()) assert.equal(visited.add(row), at)
  assert.equal(visited.size, rows.length)
  assert.ok(visited.expectedOmissions() < 1e-10)
})
