/** Plan: whatever is put in and taken out, also while it is read, the table holds what a map would. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Vacancy, VacancyTable } from '../../src/core/vacancy-table.ts'

function vacancyOf(partition: number): Vacancy {
  const times = { sinceMs: 1, notBeforeMs: 1, chosenAtMs: 1 }
  return { partition, ...times, attempts: 0, target: null, chosen: false }
}

test('vacancy table, after any changes, holds what a map would, by partition', () => {
  const changes = fc.array(fc.oneof(fc.nat(40), fc.constant('read' as const)), { maxLength: 200 })
  fc.assert(
    fc.property(changes, (all) => {
      const table = new VacancyTable()
      const model = new Map<number, Vacancy>()
      for (const change of all) {
        if (change === 'read') {
          const meant = [...model.keys()].sort((a, b) => a - b)
          assert.deepEqual(
            [...table].map(({ partition }) => partition),
            meant,
          )
          continue
        }
        const known = table.get(change)
        assert.equal(known, model.get(change) ?? null)
        if (known === null) {
          const vacancy = vacancyOf(change)
          table.add(vacancy)
          model.set(change, vacancy)
        } else {
          table.remove(known)
          model.delete(change)
        }
        assert.equal(table.size, model.size)
      }
    }),
  )
})

test('vacancy table, one taken out while it is read, is passed over', () => {
  const table = new VacancyTable()
  for (const partition of [3, 5, 9]) table.add(vacancyOf(partition))
  const read: number[] = []
  for (const { partition } of table) {
    read.push(partition)
    const later = table.get(5)
    if (later !== null) table.remove(later)
  }
  assert.deepEqual(read, [3, 9])
})
