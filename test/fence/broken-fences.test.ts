/**
 * Plan: each of the four fences, broken in each of four ways on its real server, is found out by the
 * conformance suite, for the right reason; and unbroken, in the same harness, it is not. Each way has a
 * meaning for each fence: the files `broken-*.ts` say which.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FenceViolationName, fenceConformance } from '../../src/testing/index.ts'
import { brokenEtcd } from './broken-etcd.ts'
import { brokenHttp } from './broken-http.ts'
import { brokenPostgres } from './broken-postgres.ts'
import { brokenRedis } from './broken-redis.ts'
import type { Break } from './memory-resource.ts'

const FENCES = {
  PostgreSQL: brokenPostgres,
  Redis: brokenRedis,
  etcd: brokenEtcd,
  HTTP: brokenHttp,
}

type Expected = {
  /** The suite must say this. */
  readonly name: FenceViolationName
  /** It may say these besides, which follow from the same break. */
  readonly besides: readonly FenceViolationName[]
}

const EXPECTED: Readonly<Record<Break, Expected>> = {
  'check-outside-transaction': {
    name: 'late-write-after-seal-accepted',
    besides: ['accepted-tokens-decreased'],
  },
  'equal-generation-accepted': {
    name: 'equal-position-of-another-session-accepted',
    // What took the place of the right owner refuses it, and is named as the highest.
    besides: [
      'one-token-two-writers',
      'refusal-does-not-name-the-highest',
      'current-owner-refused',
    ],
  },
  'lost-on-restart': { name: 'high-water-mark-lost', besides: [] },
  'no-seal': {
    name: 'late-write-after-seal-accepted',
    // Where an effect holds the row as a seal does, the new owner's first write waits for a stopped one.
    besides: [
      'unsealed-effect-accepted',
      'accepted-tokens-decreased',
      'stale-seal-accepted',
      'equal-position-of-another-session-accepted',
      'new-owner-held-up',
    ],
  },
}

const POINTS_MAX = 200
/** A restart shows at every point whether the mark was kept. */
const POINTS_BEFORE_RESTART = 4

for (const [fence, makeResource] of Object.entries(FENCES)) {
  test(`the ${fence} fence, unbroken, has no violation`, async (t) => {
    const report = await fenceConformance({
      makeResource: () => makeResource(t, null),
      points: POINTS_BEFORE_RESTART * 2,
      seed: fence,
    })
    assert.deepEqual(report.violations, [])
    assert.equal(report.restartChecked, true)
  })

  for (const [broken, { name, besides }] of Object.entries(EXPECTED)) {
    test(`the ${fence} fence with ${broken} is found out as ${name}`, async (t) => {
      const report = await fenceConformance({
        makeResource: () => makeResource(t, broken as Break),
        points: broken === 'lost-on-restart' ? POINTS_BEFORE_RESTART : POINTS_MAX,
        seed: `${fence} ${broken}`,
        heldUpAfterMs: 300,
        until: name,
      })
      const found = new Set(report.violations.map((violation) => violation.name))
      t.diagnostic(`${report.points} points: ${[...found].join(', ')}`)
      assert.ok(found.has(name), `${name} among ${[...found]}`)
      const allowed = new Set([name, ...besides])
      const other = report.violations.filter((violation) => !allowed.has(violation.name))
      assert.deepEqual(other, [])
    })
  }
}
