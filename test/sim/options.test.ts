/** Plan: the command line says what is wrong with it; a soak's file survives, and other files are refused. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { noTotals } from './figures.ts'
import { parseOptions } from './options.ts'
import { readSoakState, type SoakState, writeSoakState } from './soak-state.ts'

function errorOf(...args: readonly string[]): string {
  const parsed = parseOptions(args)
  return parsed.ok ? 'none' : parsed.error
}

test('options have defaults, and are read', () => {
  const parsed = parseOptions(['--seeds', '30', '--from', '7', '--short', '--json', 'a.json'])
  assert.ok(parsed.ok)
  const { seeds, from, processes, length, jsonFile, minutes } = parsed.options
  assert.deepEqual([seeds, from, processes, length], [30, 7, 2, 'short'])
  assert.deepEqual([jsonFile, minutes], ['a.json', null])
})

test('a wrong option is named', () => {
  assert.match(errorOf('--seeds', 'many'), /--seeds must be a whole number from 1 on, not "many"/)
  assert.match(errorOf('--from', '0'), /--from must be/)
  assert.match(errorOf('--minutes=-1'), /--minutes must be a number above 0/)
  assert.match(errorOf('--keep', '1,x', '--seeds', '1'), /--keep must be numbers of faults/)
  assert.match(errorOf('--keep', '1'), /--keep is of one seed/)
  assert.match(errorOf('--soak', 'f'), /--soak needs --minutes or --seeds/)
  assert.match(errorOf('--soak', 'f', '--from', '3', '--minutes', '1'), /leave --from out/)
  assert.match(errorOf('--short', '--long'), /--short or --long, not both/)
  assert.match(errorOf('--sedes', '3'), /--sedes/)
})

test('the state of a soak is kept, and another file is none', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-soak-'))
  try {
    const file = join(folder, 'state.json')
    assert.equal(readSoakState(file), null)
    const state: SoakState = {
      ...{ v: 1, nextSeed: 8, totals: { ...noTotals(), seeds: 7 }, failures: [] },
      ...{ commits: ['abc1234'], tookMs: 5 },
    }
    writeSoakState(file, state)
    assert.deepEqual(readSoakState(file), state)
    writeFileSync(file, '{"v":2}')
    assert.throws(() => readSoakState(file), /is no state of a soak/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
