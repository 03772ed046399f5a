/** Plan: `verify` over the files of a sound run, a broken one and one with a gap; what it says and exits with. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryLog } from '../../src/evidence/history-log.ts'
import { effect, type Run, soundRun, token } from '../evidence/evidence-world.ts'
import { run as tenure } from './cli-world.ts'

function filesOf({ accepts, history, inputs }: Run) {
  const text = (lines: readonly object[]) => lines.map((line) => JSON.stringify(line)).join('\n')
  return {
    '.tenure/dev/ledger.jsonl': `${text(accepts)}\n`,
    '.tenure/dev/history.jsonl': `${text(history)}\n`,
    '.tenure/dev/published.jsonl': `${text(inputs.map((input) => ({ input })))}\n`,
  }
}

test('tenure verify, the last run of dev was sound, proves it and shows both histograms', async () => {
  const { exitCode, stdout } = await tenure(['verify'], { files: filesOf(soundRun()) })
  assert.equal(exitCode, 0)
  assert.match(stdout, /^proved: 3 grants, 8 accepted, 1 refused\n {2}S1 {3}proved\n/)
  assert.match(stdout, /\n {2}S11 {2}proved\n/)
  assert.match(stdout, /\nownerless: 1 times, p50 100 ms.*\n {4}<= 100 ms +1 {2}#+\n/)
  assert.match(stdout, /\noverlap of .*: 2 times, .* max 3 ms\n/)
})

test('tenure verify, a violation, exits 1 and names promise, partition, generations and time', async () => {
  const run = soundRun()
  run.accepts.push(effect(token(2, 'b'), null, 940, 950))
  const { exitCode, stdout } = await tenure(['verify'], { files: filesOf(run) })
  assert.equal(exitCode, 1)
  assert.match(stdout, /^violated: /)
  assert.match(
    stdout,
    /^S3 accepted-decreases: partition 0, generations \d+\.3, \d+\.2, at 950 ms/m,
  )
  const json = await tenure(['verify', '--json'], { files: filesOf(run) })
  const reply = JSON.parse(json.stdout)
  assert.deepEqual([json.exitCode, reply.verdict, reply.promises.S3], [1, 'violated', 'violated'])
  assert.equal(reply.violations[0].kind, 'accepted-decreases')
  assert.equal(reply.ownerlessMs.max, 100)
})

test('tenure verify, many violations alike, shows the first and how many there are', async () => {
  const run = soundRun()
  for (let atMs = 940; atMs < 945; atMs += 1) {
    run.accepts.push(effect(token(3, 'c'), null, atMs, atMs + 1))
  }
  const { exitCode, stdout } = await tenure(['verify'], { files: filesOf(run) })
  assert.equal(exitCode, 1)
  const lines = stdout.split('\n').filter((line) => line.startsWith('S3 '))
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /at 941 ms.* \(and 4 more of these generations\)$/)
})

test('tenure verify, a history with a gap, exits 1 and says that it is inconclusive', async () => {
  const run = soundRun()
  run.history.splice(4, 1)
  const { exitCode, stdout } = await tenure(['verify'], { files: filesOf(run) })
  assert.equal(exitCode, 1)
  assert.match(stdout, /^inconclusive: /)
  assert.match(stdout, /^gap: partition 0: .* entries are missing$/m)
})

test('tenure verify, other files without a list of inputs, checks all but S11', async () => {
  const files = filesOf(soundRun())
  const { exitCode, stdout } = await tenure(['verify', '--accepts', 'a', '--history', 'h'], {
    files: { a: files['.tenure/dev/ledger.jsonl'], h: files['.tenure/dev/history.jsonl'] },
  })
  assert.equal(exitCode, 0)
  assert.match(stdout, /\n {2}S11 {2}not-checked\n/)
})

test('tenure verify --etcd, reads the history of the one group from etcd', async () => {
  const run = soundRun()
  const log: HistoryLog = { events: run.history, missing: [], timed: false }
  const asked: string[] = []
  const world = {
    files: { a: filesOf(run)['.tenure/dev/ledger.jsonl'] },
    implementations: {
      readHistory: async (_: unknown, group: string) => {
        asked.push(group)
        return log
      },
    },
  }
  const words = ['verify', '--accepts', 'a', '--etcd', '--group', 'orders']
  const { exitCode, stdout } = await tenure(words, world)
  assert.equal(exitCode, 0)
  assert.deepEqual(asked, ['orders'])
  assert.match(stdout, /ownerless: not measured/)
  const nameless = await tenure(['verify', '--accepts', 'a', '--etcd'], world)
  assert.equal(nameless.exitCode, 2)
  assert.match(nameless.stderr, /needs one group/)
})

test('tenure verify, what cannot be read, exits 2 with the remedy', async () => {
  const missing = await tenure(['verify'])
  assert.equal(missing.exitCode, 2)
  assert.match(missing.stderr, /ledger\.jsonl cannot be read \(ENOENT\): name the file with --acc/)
  const files = { ...filesOf(soundRun()), '.tenure/dev/ledger.jsonl': 'none\n' }
  const torn = await tenure(['verify'], { files })
  assert.equal(torn.exitCode, 2)
  assert.match(torn.stderr, /ledger\.jsonl, line 1: no line of an accept log/)
  const both = await tenure(['verify', '--etcd', '--history', 'h'])
  assert.equal(both.exitCode, 2)
})
