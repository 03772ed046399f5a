/** Plan: every phase to text and back, fields of later versions kept, everything unsound refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { PartitionRecord } from '../../src/core/partition-record.ts'
import {
  decodePartitionRecord,
  encodePartitionRecord,
  recordOwner,
} from '../../src/core/partition-record.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { B, halted, ME, owned, revoking, vacant } from './ownership-cases.ts'

const PHASES = [vacant(), owned(), revoking(B), revoking(null, {}, 3), halted()]

test('partition record, each phase, comes back as it was, without a version in it', () => {
  for (const { record, raw } of PHASES) {
    const back = decodePartitionRecord(raw, 7)
    assert.deepEqual(back, record)
    assert.equal('v' in back, false)
    assert.equal(encodePartitionRecord(back), raw)
  }
})

test('partition record, fields of a later version, are written back as they came', () => {
  const anyField = fc.dictionary(fc.stringMatching(/^x[a-z]{0,5}$/), fc.jsonValue(), {
    noNullPrototype: true,
  })
  fc.assert(
    fc.property(fc.constantFrom(...PHASES), anyField, ({ raw }, fields) => {
      const text = JSON.stringify({ ...JSON.parse(raw), ...fields })
      const record = decodePartitionRecord(text, 7)
      assert.deepEqual(JSON.parse(encodePartitionRecord(record)), JSON.parse(text))
      assert.deepEqual(
        record.unknown,
        Object.keys(fields).length === 0 ? null : JSON.parse(JSON.stringify(fields)),
      )
    }),
  )
})

test('partition record, owner, is named in each phase but vacant', () => {
  assert.deepEqual(
    [...PHASES.map(({ record }) => recordOwner(record)), recordOwner(null)],
    [null, ME, ME, ME, ME, null],
  )
})

test('partition record, unknown version, is refused with both versions', () => {
  const text = owned().raw.replace('"v":1', '"v":2')
  assert.throws(
    () => decodePartitionRecord(text, 7),
    (error) => isTenureError(error, 'record-version-unknown') && /2.*knows 1/.test(error.message),
  )
})

test('partition record, no record at all, is refused as malformed', () => {
  const sound = JSON.parse(owned().raw) as PartitionRecord
  const move = JSON.parse(revoking(B).raw)
  const texts = [
    '',
    'null',
    '[]',
    ...[
      { ...sound, phase: 'other' },
      { ...sound, generation: 1.5 },
      { ...sound, incarnation: '1' },
      { ...sound, operation: 7 },
      { ...sound, owner: null },
      { ...sound, owner: { session: ME.session } },
      { ...sound, owner: { member: ME.member } },
      { ...sound, previous: { member: ME.member } },
      { ...sound, previous: 'orders-1' },
      { ...move, move: null },
      { ...move, move: { ...move.move, to: 7 } },
      { ...move, move: { ...move.move, rewrites: undefined } },
      { ...move, move: { ...move.move, id: undefined } },
    ].map((value) => JSON.stringify(value)),
  ]
  for (const text of texts) {
    assert.throws(
      () => decodePartitionRecord(text, 7),
      (error) => isTenureError(error, 'record-malformed'),
      text,
    )
  }
})
