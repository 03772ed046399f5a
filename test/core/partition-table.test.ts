/**
 * Plan: the table against a plain map of decoded records, over random puts and deletes of more partitions
 * than it keeps decoded; and what one partition costs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { memberName, operationId, sessionId } from '../../src/core/ids.ts'
import type { Owner, PartitionRecord } from '../../src/core/partition-record.ts'
import {
  decodePartitionRecord,
  encodePartitionRecord,
  recordOwner,
} from '../../src/core/partition-record.ts'
import { PartitionTable } from '../../src/core/partition-table.ts'
import { readPlainRecord } from '../../src/core/plain-record-bytes.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { createSeededRandom } from '../../src/testing/index.ts'

const PARTITIONS = 5000

function ownerOf(number: number): Owner {
  const session = sessionId((number + 1).toString(16).padStart(16, '0'))
  return { member: memberName(`orders-${number % 7}`), session }
}

function recordOf(draw: number, generation: number): PartitionRecord {
  const owner = ownerOf(draw % 13)
  // Mostly the grant before; now and then one of another incarnation, as after a restore.
  const before =
    draw % 5 === 0
      ? { incarnation: 1, generation: 1 }
      : { incarnation: 1_764_440_000 + (draw % 2), generation: generation - 1 }
  const common = {
    ...{ incarnation: 1_764_440_000 + (draw % 2), generation, atMs: 5, unknown: null },
    operation: operationId(generation.toString(16).padStart(16, '0')),
    previous: draw % 3 === 0 ? null : { ...ownerOf(draw % 11), ...before },
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
    case 1: {
      // In the order in which a grant is written.
      const { incarnation, previous, operation, atMs, unknown } = common
      const position = { incarnation, generation }
      const how = 'election' as const
      return { phase: 'owned', ...position, owner, how, previous, operation, atMs, unknown }
    }
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
      table.put(partition, { value: raw }, step)
    }
  }
  for (let partition = 0; partition < PARTITIONS + 3; partition += 1) {
    const kept = known.get(partition)
    const record = kept?.record ?? null
    assert.deepEqual(
      {
        text: table.text(partition),
        stored: table.record(partition),
        phase: table.phase(partition),
        owner: table.owner(partition),
        generation: table.position(partition)?.generation,
        incarnation: table.position(partition)?.incarnation,
        lastMember: table.lastOwner(partition)?.member ?? null,
        modRevision: table.modRevision(partition),
      },
      {
        text: kept?.raw ?? null,
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
  table.put(7, { value: raw }, 3)
  assert.throws(
    () => table.put(7, { value: '{"v":1}' }, 4),
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
    for (const partition of [0, 1])
      table.put(partition, { value: encodePartitionRecord(record) }, life + 1)
    assert.deepEqual(table.owner(0), owner)
    assert.equal(table.owner(0), table.owner(1), 'one object for both')
  }
})

test('partition table, of any text, gives back the text and what it decodes to, or refuses it alike', () => {
  const plain = { ...recordOf(1, 7), previous: { ...ownerOf(3), ...at(6) } } as PartitionRecord
  const first = { ...recordOf(9, 1), previous: null } as PartitionRecord
  const records = [plain, first, { ...plain, how: 'hand-over' } as PartitionRecord]
  const texts = [...records, ...[0, 2, 3].map((draw) => recordOf(draw, 7))].map(
    encodePartitionRecord,
  )
  for (const text of texts.slice(0, 3))
    assert.notEqual(readPlainRecord({ value: text }), null, text)
  const character = fc.constantFrom(...'0123456789{}[]",:.-abcdefnull\\ \n')
  const change = fc.record({
    at: fc.nat(400),
    cut: fc.nat(3),
    put: fc.array(character, { maxLength: 3 }),
  })
  let plainToo = 0
  fc.assert(
    fc.property(fc.constantFrom(...texts), fc.array(change, { maxLength: 2 }), (text, changes) => {
      const changed = changes.reduce(
        (now, { at, cut, put }) => now.slice(0, at) + put.join('') + now.slice(at + cut),
        text,
      )
      const table = new PartitionTable()
      const decoded = outcomeOf(() => decodePartitionRecord(changed, 0))
      const put = outcomeOf(() => table.put(0, { value: changed }, 1))
      if ('error' in decoded) {
        assert.deepEqual(put, decoded)
        return
      }
      if (readPlainRecord({ value: changed }) !== null) plainToo += 1
      assert.equal(table.text(0), changed)
      assert.deepEqual(table.record(0), { record: decoded.value, raw: changed })
      assert.equal(table.text(0), changed)
    }),
    { numRuns: 20_000 },
  )
  assert.ok(plainToo > 1000, `${plainToo} of them plain`)
})

function outcomeOf<Value>(
  run: () => Value,
): { readonly value: Value } | { readonly error: unknown } {
  try {
    return { value: run() }
  } catch (error) {
    return { error: isTenureError(error, 'record-malformed') ? error.code : String(error) }
  }
}

test('partition table, of plain grants, keeps neither texts nor records on the heap', () => {
  const size = 20_000
  const fill = () => {
    const table = new PartitionTable()
    table.reserve(size)
    for (let partition = 0; partition < size; partition += 1) {
      const previous = { ...ownerOf(partition % 11), ...at(partition) }
      const record = { ...recordOf(1, partition + 1), previous } as PartitionRecord
      table.put(partition, { value: encodePartitionRecord(record) }, partition + 1)
    }
    return table
  }
  fill()
  const collect = collector()
  collect()
  const before = process.memoryUsage().heapUsed
  const table = fill()
  collect()
  const bytes = (process.memoryUsage().heapUsed - before) / size
  assert.equal(table.size, size)
  // A text alone would be 330.
  assert.ok(bytes < 60, `${bytes} bytes each`)
})

/** The engine's collector, which only a flag makes known. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

function at(generation: number) {
  return { incarnation: 1_764_440_001, generation }
}
