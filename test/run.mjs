/**
 * Runs the tests with Node's own runner, in three parts:
 *
 *   1. what shares the machine well: two files at a time
 *   2. whole clusters of processes, which mostly wait for leases: two files at a time, each with a runner
 *      of its own. One that fails beside another runs again alone, and then has to pass: on two cores a
 *      neighbour can starve it of the time in which it must renew a lease.
 *   3. tests of size, which need both cores: one at a time
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
const CLUSTERS = /^test\/(e2e\/faults|deploy)\//
const SIZE = /^test\/e2e\/scale\//
const PROOF =
  /^test\/e2e\/(work|restore)\/|^test\/deploy\/(scheduled|outbox)|^test\/fence\/(postgres|resources)-conformance/
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

const together = files.filter((file) => !CLUSTERS.test(file) && !SIZE.test(file) && !isProof)
const clusters = files.filter((file) => CLUSTERS.test(file) && !isProof)
const alone = files.filter((file) => SIZE.test(file) || isProof)
let passed = true
if (together.length > 0) passed = (await runTests(together, 2, 'inherit')).passed && passed
if (clusters.length > 0) passed = (await runClusters(clusters)) && passed
if (alone.length > 0) passed = (await runTests(alone, 1, 'inherit')).passed && passed
process.exitCode = passed ? 0 : 1

async function runClusters(waiting) {
  const queue = [...waiting]
  const failed = []
  const worker = async () => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const result = await runTests([file], 1, 'pipe')
      console.log(`\n${file}\n${result.output}`)
      if (!result.passed) failed.push(file)
    }
  }
  await Promise.all([worker(), worker()])
  let allPassed = true
  for (const file of failed) {
    console.log(`\n${file}: failed beside another file, runs again alone`)
    allPassed = (await runTests([file], 1, 'inherit')).passed && allPassed
  }
  return allPassed
}

function runTests(part, concurrency, output) {
  const args = [
    ...['--import', 'tsx', '--test', `--test-concurrency=${concurrency}`],
    ...['--test-timeout=600000', '--test-reporter=spec', ...part],
  ]
  const runner = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', output, output] })
  const chunks = []
  runner.stdout?.on('data', (chunk) => chunks.push(chunk))
  runner.stderr?.on('data', (chunk) => chunks.push(chunk))
  return new Promise((resolve) => {
    runner.on('close', (status) => {
      resolve({ passed: status === 0, output: Buffer.concat(chunks).toString('utf8') })
    })
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
