/**
 * Plan: the table against a plain map of decoded records, over random puts and deletes of more partitions
 * than it keeps decoded; and what one partition costs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberName, operationId, sessionId } from '../../src/core/ids.ts'
import type { Owner, PartitionRecord } from '../../src/core/partition-record.ts'
import { encodePartitionRecord, recordOwner } from '../../src/core/partition-record.ts'
import { PartitionTable } from '../../src/core/partition-table.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { createSeededRandom } from '../../src/testing/index.ts'

const PARTITIONS = 5000

function ownerOf(number: number): Owner {
  const session = sessionId((number + 1).toString(16).padStart(16, '0'))
  return { member: memberName(`orders-${number % 7}`), session }
}

function recordOf(draw: number, generation: number): PartitionRecord {
  const owner = ownerOf(draw % 13)
  const common = {
    ...{ incarnation: 1_764_440_000 + (draw % 2), generation, atMs: 5, unknown: null },
    operation: operationId(generation.toString(16).padStart(16, '0')),
    previous: draw % 3 === 0 ? null : { ...ownerOf(draw % 11), incarnation: 1, generation: 1 },
  }
  const move = {
    id: 'm',
    to: memberName('orders-1'),
    reason: 'balance',
    by: 'r',
    rewrites: 0,
  } as const
  switch (draw % 4) {
    case 0:
      return { ...common, phase: 'vacant' }
    case 1:
      return { ...common, phase: 'owned', owner, how: 'election' }
    case 2:
      return { ...common, phase: 'revoking', owner, how: 'election', move: { ...move, atMs: 1 } }
    default:
      return { ...common, phase: 'halted', owner, reason: 'fence-ahead' }
  }
}

test('partition table, random puts and deletes, answers as a map of decoded records does', () => {
  const random = createSeededRandom('partition table')
  const draw = (below: number) => Math.floor(random.fraction() * below)
  const table = new PartitionTable()
  const known = new Map<number, { record: PartitionRecord; raw: string; revision: number }>()
  for (let step = 1; step <= 30_000; step += 1) {
    const partition = draw(PARTITIONS)
    if (draw(5) === 0) {
      known.delete(partition)
      table.delete(partition)
    } else {
      const record = recordOf(draw(1000), step)
      const raw = encodePartitionRecord(record)
      known.set(partition, { record, raw, revision: step })
      table.put(partition, raw, step)
    }
  }
  for (let partition = 0; partition < PARTITIONS + 3; partition += 1) {
    const kept = known.get(partition)
    const record = kept?.record ?? null
    assert.deepEqual(
      {
        stored: table.record(partition),
        phase: table.phase(partition),
        owner: table.owner(partition),
        generation: table.position(partition)?.generation,
        incarnation: table.position(partition)?.incarnation,
        lastMember: table.lastOwner(partition)?.member ?? null,
        modRevision: table.modRevision(partition),
      },
      {
        stored: kept === undefined ? null : { record: kept.record, raw: kept.raw },
        phase: record?.phase ?? null,
        owner: recordOwner(record),
        generation: record?.generation,
        incarnation: record?.incarnation,
        lastMember: (recordOwner(record) ?? record?.previous)?.member ?? null,
        modRevision: kept?.revision ?? 0,
      },
    )
  }
  assert.equal(table.size, known.size)
  assert.deepEqual(
    [...table.partitions()],
    [...known.keys()].sort((a, b) => a - b),
  )
  const newest = Math.max(...[...known.values()].map(({ revision }) => revision))
  assert.equal(table.newestModRevision(), newest)
})

test('partition table, a text that is no record, is refused and leaves the table as it was', () => {
  const table = new PartitionTable()
  const raw = encodePartitionRecord(recordOf(1, 1))
  table.put(7, raw, 3)
  assert.throws(
    () => table.put(7, '{"v":1}', 4),
    (error) => isTenureError(error, 'record-malformed'),
  )
  assert.equal(table.text(7), raw)
  assert.equal(table.modRevision(7), 3)
  assert.equal(table.size, 1)
})

test('partition table, owners that come and go, keep no more names than partitions', () => {
  const table = new PartitionTable()
  for (let life = 0; life < 1000; life += 1) {
    const owner = ownerOf(life)
    const record = { ...recordOf(1, life + 1), phase: 'owned', owner, how: 'election' } as const
    for (const partition of [0, 1]) table.put(partition, encodePartitionRecord(record), life + 1)
    assert.deepEqual(table.owner(0), owner)
    assert.equal(table.owner(0), table.owner(1), 'one object for both')
  }
})
