/** The conformance suite itself: silent on a right resource, and it names what is broken in each other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FenceViolationName, fenceConformance } from '../../src/testing/index.ts'
import { type Break, createMemoryResource } from './memory-resource.ts'

const run = async (broken: Break | null) => {
  const makeResource = async () => createMemoryResource(broken)
  const report = await fenceConformance({ makeResource, seed: 'memory', heldUpAfterMs: 100 })
  return { report, names: new Set(report.violations.map(({ name }) => name)) }
}

const EXPECTED: Readonly<Record<Break, readonly FenceViolationName[]>> = {
  'check-outside-transaction': ['late-write-after-seal-accepted', 'accepted-tokens-decreased'],
  'equal-generation-accepted': [
    'equal-position-of-another-session-accepted',
    'one-token-two-writers',
  ],
  'lost-on-restart': ['high-water-mark-lost'],
  'no-seal': ['late-write-after-seal-accepted', 'unsealed-effect-accepted'],
}

test('a right resource at 200 points has no violation, and owners stood still at every step', async () => {
  const { report } = await run(null)
  assert.deepEqual(report.violations, [])
  assert.equal(report.points, 200)
  assert.equal(report.restartChecked, true)
  const { before, during, checked, written } = report.stops
  assert.deepEqual(before, { stopped: 50, sealedMeanwhile: 50, sealWaited: 0 })
  assert.equal(during.stopped, 50)
  for (const inside of [checked, written]) {
    assert.deepEqual(inside, { stopped: 50, sealedMeanwhile: 0, sealWaited: 50 })
  }
})

for (const [broken, expected] of Object.entries(EXPECTED)) {
  test(`a resource with ${broken} is named for it`, async () => {
    const { names } = await run(broken as Break)
    for (const name of expected) assert.ok(names.has(name), `${name} among ${[...names]}`)
    assert.ok(!names.has('call-failed'))
  })
}

test('only the restart betrays a mark that is lost by it', async () => {
  const { names } = await run('lost-on-restart')
  assert.deepEqual([...names], ['high-water-mark-lost'])
})
