/**
 * Plan: one sound run, in which each of the violations that `verify` knows is planted by itself, and in
 * which entries of the history go missing one by one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EffectLine } from '../../src/evidence/accept-log.ts'
import { describeViolation, type ViolationKind } from '../../src/evidence/findings.ts'
import { grantsOf } from '../../src/evidence/history-log.ts'
import { verifyRun } from '../../src/evidence/verify.ts'
import { effectsByToken, verifyHandOvers } from '../../src/evidence/verify-hand-overs.ts'
import {
  effect,
  evidenceOf,
  grant,
  INCARNATION,
  type Run,
  sealed,
  soundRun,
  token,
} from './evidence-world.ts'

function verify(run: Run, missing: readonly string[] = []) {
  return verifyRun(evidenceOf(run, missing))
}

test('a sound run, verified, proves every promise and measures the time without owner', () => {
  const found = verify(soundRun())
  assert.deepEqual(found.violations, [])
  assert.deepEqual(found.gaps, [])
  assert.equal(found.verdict, 'proved')
  assert.deepEqual(new Set(Object.values(found.promises)), new Set(['proved']))
  assert.deepEqual([found.grants, found.accepted, found.refused], [3, 8, 1])
  assert.deepEqual(found.ownerlessMs, [100])
  // The killed owner's refused write overlaps with the next owner's: allowed, and measured.
  assert.deepEqual(found.overlapMs, [0, 3])
  assert.equal(found.drainedOverlapMs, 0)
})

test('a run without a list of inputs, verified, is proved but for S11', () => {
  const run = soundRun()
  const found = verifyRun({ ...evidenceOf(run), inputs: null })
  assert.equal(found.verdict, 'proved')
  assert.equal(found.promises.S11, 'not-checked')
})

type Planted = {
  readonly kind: ViolationKind
  readonly promise: string
  readonly plant: (run: Run) => void
  readonly generations: readonly number[]
  readonly atMs: number | null
}

const THIRD = { atMs: 900, revision: 17 }

const PLANTED: readonly Planted[] = [
  {
    kind: 'generation-repeated',
    promise: 'S1',
    plant: ({ history, accepts }) => {
      history[6] = grant(2, 'b', { ...THIRD, previous: { member: 'b', generation: 2 } })
      accepts.splice(6)
      accepts.push(effect(token(2, 'b'), 'i-5', 910, 930))
    },
    generations: [2, 2],
    atMs: 900,
  },
  {
    kind: 'generation-skipped',
    promise: 'S1',
    plant: ({ history, accepts }) => {
      history[6] = grant(4, 'a', { ...THIRD, previous: { member: 'b', generation: 2 } })
      accepts.splice(6, 3, sealed(token(4, 'a'), 910), effect(token(4, 'a'), 'i-5', 912, 930))
    },
    generations: [2, 4],
    atMs: 900,
  },
  {
    kind: 'accepted-decreases',
    promise: 'S3',
    plant: ({ accepts }) => {
      accepts.splice(7, 1, effect(token(2, 'b'), null, 905, 911))
    },
    generations: [3, 2],
    atMs: 911,
  },
  {
    kind: 'ungranted-token',
    promise: 'S3',
    plant: ({ accepts }) => {
      accepts.push(effect(token(4, 'c'), null, 940, 950))
    },
    generations: [3, 4],
    atMs: 950,
  },
  {
    kind: 'equal-position-other-session',
    promise: 'S3',
    plant: ({ accepts }) => {
      accepts.push(effect(token(3, 'c'), null, 940, 950))
    },
    generations: [3, 3],
    atMs: 950,
  },
  {
    kind: 'drained-overlap',
    promise: 'S10',
    plant: ({ history, accepts }) => {
      accepts[2] = effect(token(1, 'a'), 'i-2', 190, 222)
      accepts[3] = sealed(token(2, 'b'), 223)
      accepts[4] = effect(token(2, 'b'), 'i-3', 220, 240)
      history[4] = { ...history[4], atMs: 225 } as (typeof history)[number]
    },
    generations: [1, 2],
    atMs: 220,
  },
  {
    kind: 'accepted-after-hand-over',
    promise: 'S10',
    plant: ({ accepts }) => {
      accepts[2] = effect(token(1, 'a'), 'i-2', 190, 212)
    },
    generations: [1, 2],
    atMs: 212,
  },
  {
    kind: 'input-lost',
    promise: 'S11',
    plant: ({ accepts }) => {
      accepts.pop()
    },
    generations: [],
    atMs: null,
  },
  {
    kind: 'input-doubled',
    promise: 'S11',
    plant: ({ accepts }) => {
      accepts.push(effect(token(3, 'a'), 'i-4', 940, 950))
    },
    generations: [2, 3],
    atMs: 950,
  },
]

for (const { kind, promise, plant, generations, atMs } of PLANTED) {
  test(`${kind} planted in a sound run, verified, is named and is all that is named`, () => {
    const run = soundRun()
    plant(run)
    const found = verify(run)
    assert.equal(found.verdict, 'violated')
    const [violation] = found.violations
    assert.deepEqual(
      found.violations.map((each) => [each.promise, each.kind]),
      [[promise, kind]],
    )
    assert.ok(violation !== undefined)
    if (kind !== 'input-lost') assert.equal(violation.partition, 0)
    assert.deepEqual(
      violation.generations,
      generations.map((generation) => `${INCARNATION}.${generation}`),
    )
    assert.equal(violation.atMs, atMs)
    assert.ok(describeViolation(violation).startsWith(`${promise} ${kind}: `))
    const others = Object.entries(found.promises).filter(([name]) => name !== promise)
    assert.deepEqual(new Set(others.map(([, verdict]) => verdict)), new Set(['proved']))
  })
}

test('a late effect before a hand-over to a later incarnation, verified, breaks no S10: it may have been lost', () => {
  const kinds = (incarnation: number) => {
    const after = grant(2, 'a', {
      ...{ atMs: 200, revision: 9, how: 'hand-over' },
      previous: { member: 'a', generation: 1 },
    })
    const grants = grantsOf([{ ...after, record: { ...after.record, incarnation } }])
    const late = effectsByToken([effect(token(1, 'a'), 'i-1', 190, 210) as EffectLine])
    return verifyHandOvers(grants, late, true).violations.map(({ kind }) => kind)
  }
  assert.deepEqual(kinds(INCARNATION), ['accepted-after-hand-over'])
  assert.deepEqual(kinds(INCARNATION + 1), [])
})

test('one position granted to two sessions, verified, breaks S2 beside S1', () => {
  const run = soundRun()
  run.history[6] = grant(2, 'c', { ...THIRD, previous: { member: 'b', generation: 2 } })
  run.accepts.splice(6)
  const found = verify({ ...run, inputs: ['i-1', 'i-2', 'i-3', 'i-4'] })
  assert.deepEqual(
    found.violations.map(({ kind }) => kind),
    ['two-sessions-one-token', 'generation-repeated'],
  )
  assert.equal(found.promises.S2, 'violated')
  assert.match(found.violations[0]?.detail ?? '', /b-session.* and c-session/)
})

test('an owner changed without a grant, verified, breaks S2', () => {
  const run = soundRun()
  const revoking = run.history[3]
  assert.ok(revoking?.type === 'record' && revoking.record.phase === 'revoking')
  const record = { ...revoking.record, owner: { ...revoking.record.owner } }
  run.history[3] = {
    ...revoking,
    record: { ...record, owner: { ...record.owner, session: 'x' } },
  } as never
  const found = verify(run)
  assert.equal(found.violations[0]?.kind, 'owner-changed')
  assert.equal(found.promises.S2, 'violated')
})

for (const [index, what] of [
  [2, 'the first grant'],
  [4, 'a grant in the middle'],
] as const) {
  test(`${what} missing from the history, verified, is a gap and nothing is concluded`, () => {
    const run = soundRun()
    run.history.splice(index, 1)
    const found = verify(run)
    assert.equal(found.verdict, 'inconclusive')
    assert.deepEqual(found.violations, [])
    assert.ok(found.gaps.length > 0)
    assert.ok(found.gaps.every(({ partition }) => partition === 0))
    assert.deepEqual([found.promises.S1, found.promises.S3], ['inconclusive', 'inconclusive'])
    assert.equal(found.promises.S11, 'proved')
  })
}

test('a gap and a violation that hangs on none of it, verified, are both told', () => {
  const run = soundRun()
  run.history.splice(4, 1)
  run.accepts.push(effect(token(3, 'c'), null, 940, 950))
  const found = verify(run)
  assert.equal(found.verdict, 'violated')
  assert.deepEqual(
    found.violations.map(({ kind }) => kind),
    ['equal-position-other-session'],
  )
  assert.ok(found.gaps.length > 0)
})

test('a history known to miss something, or of a restored etcd, is inconclusive', () => {
  assert.equal(verify(soundRun(), ['the watch broke']).verdict, 'inconclusive')
  const run = soundRun()
  run.history[6] = { ...run.history[6], revision: 5 } as (typeof run.history)[number]
  const found = verify(run)
  assert.equal(found.verdict, 'inconclusive')
  assert.match(found.gaps[0]?.detail ?? '', /revisions go back/)
})

test('nothing granted, or nothing accepted, proves nothing', () => {
  const run = soundRun()
  assert.equal(verify({ ...run, accepts: [], inputs: [] }).verdict, 'inconclusive')
  assert.equal(verify({ history: [], accepts: [], inputs: [] }).verdict, 'inconclusive')
})

test('a partition that the history does not have at all, verified, is a gap and no violation', () => {
  const run = soundRun()
  run.accepts.push(effect({ ...token(1, 'a'), partition: 7 }, null, 940, 950))
  const found = verify(run)
  assert.deepEqual([found.verdict, found.violations], ['inconclusive', []])
  assert.deepEqual(
    found.gaps.map(({ partition }) => partition),
    [7],
  )
  const empty = verify({ ...soundRun(), history: [] })
  assert.deepEqual([empty.verdict, empty.violations], ['inconclusive', []])
})

test('two resources of one log, verified, are judged each by itself', () => {
  const run = soundRun()
  const late = { ...sealed(token(1, 'a'), 905), resource: 'archive' }
  run.accepts.push(late)
  assert.equal(verify(run).verdict, 'proved')
  run.accepts.push({ ...late, resource: '' })
  assert.deepEqual(
    verify(run).violations.map(({ kind }) => kind),
    ['accepted-decreases'],
  )
})

test('grants without times on the same clock, verified, are not set against effects', () => {
  const run = soundRun()
  run.accepts[2] = effect(token(1, 'a'), 'i-2', 190, 212)
  const { history, ...rest } = evidenceOf(run)
  const found = verifyRun({ ...rest, history: { ...history, timed: false } })
  assert.equal(found.verdict, 'proved')
  assert.equal(found.ownerlessMs, null)
})
