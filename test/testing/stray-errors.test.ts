/** Plan: in a process of its own, errors that nobody catches reach the process whose code threw them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./stray-error-program.ts', import.meta.url))

test('an error that nobody catches kills the process that it came from, and no other', () => {
  const run = spawnSync(process.execPath, ['--import', 'tsx', PROGRAM], { encoding: 'utf8' })
  const expected = ['timer', 'rejection', 'next tick'].flatMap((way) => [
    `${way}: stray ${way}, killed, running`,
    'guilty died of a bug',
  ])
  assert.deepEqual([run.status, run.stdout.trim().split('\n')], [0, expected], run.stderr)
})
