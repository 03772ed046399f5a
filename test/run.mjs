/**
 * Runs the tests with Node's own runner: first those that share the machine well, two files at a time,
 * then those with whole clusters of processes, one at a time, so that they meet only their own load.
 *
 *   node test/run.mjs [--proof] [PART OF A PATH …]
 *
 * `--proof` runs those that need minutes each, of which `npm test` has only smaller siblings.
 */
import { spawn } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const ALONE = /^test\/(e2e|deploy)\//
const PROOF = /^test\/e2e\/work\/|^test\/fence\/(postgres|resources)-conformance/
const words = process.argv.slice(2)
const isProof = words.includes('--proof')
const wanted = words.filter((word) => word !== '--proof')
const files = testFiles(join(root, 'test')).filter(
  (file) =>
    PROOF.test(file) === isProof &&
    (wanted.length === 0 || wanted.some((part) => file.includes(part))),
)
if (files.length === 0) {
  console.error(`no test file matches ${wanted.join(', ')}`)
  process.exit(2)
}

const together = files.filter((file) => !ALONE.test(file) && !isProof)
const alone = files.filter((file) => ALONE.test(file) || isProof)
let code = 0
for (const [concurrency, part] of [
  [2, together],
  [1, alone],
]) {
  if (part.length > 0) code = (await runTests(part, concurrency)) || code
}
process.exitCode = code

function runTests(part, concurrency) {
  const args = [
    ...['--import', 'tsx', '--test', `--test-concurrency=${concurrency}`],
    ...['--test-timeout=300000', '--test-reporter=spec', ...part],
  ]
  const runner = spawn(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return new Promise((resolve) => {
    runner.on('exit', (status) => resolve(status ?? 1))
  })
}

function testFiles(folder) {
  return readdirSync(folder)
    .sort()
    .flatMap((name) => {
      const path = join(folder, name)
      if (statSync(path).isDirectory()) return testFiles(path)
      return name.endsWith('.test.ts') ? [relative(root, path)] : []
    })
}
