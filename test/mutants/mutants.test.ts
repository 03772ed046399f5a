/**
 * Plan: every mutant still fits the source that it takes a safeguard out of. Whether each is caught is
 * shown by `npm run mutants`.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { applyEdit } from './mutant.ts'
import { MUTANTS } from './mutants.ts'
import { ROOT } from './mutated-tree.ts'

test('mutants: each fits the source', () => {
  for (const { name, edits } of MUTANTS) {
    const texts = new Map<string, string>()
    for (const edit of edits) {
      const before = texts.get(edit.file) ?? readFileSync(join(ROOT, edit.file), 'utf8')
      const after = applyEdit(name, edit, before)
      assert.notEqual(after, before, `${name} changes nothing`)
      texts.set(edit.file, after)
    }
  }
})

test('mutants: names are unique, and each says what must catch it', () => {
  assert.equal(new Set(MUTANTS.map(({ name }) => name)).size, MUTANTS.length)
  assert.ok(MUTANTS.length >= 12)
  assert.ok(MUTANTS.every(({ promises }) => promises.length > 0))
})

test('mutants: an edit that no longer fits says what to do', () => {
  const edit = { file: 'src/core/fence.ts', find: 'gone', replace: 'x' }
  assert.throws(
    () => applyEdit('some', edit, 'nothing of it'),
    /rotted.*0 times.*write its `find`/s,
  )
  assert.throws(() => applyEdit('some', edit, 'gone gone'), /2 times/)
})
