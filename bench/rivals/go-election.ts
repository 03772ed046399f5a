/**
 * Go's `concurrency.Election` from Debian's own sources of etcd's client: one session per member, one
 * election per partition on it. The member is compiled at the first use, into the user's cache folder.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createRival } from './create-rival.ts'
import { openEtcdStage } from './etcd-stage.ts'
import { filePath, packageVersion, whatIsMissing } from './programs.ts'

const run = promisify(execFile)
const GO = '/usr/bin/go'
const GOPATH = '/usr/share/gocode'
const SOURCE = filePath('go-election-member/main.go')
const BUILD_TIMEOUT_MS = 600_000
/** Each member watches a key per partition to stand by. */
const FAILOVER_PARTITIONS_MAX = 1000

export const goElection = createRival({
  name: 'Go concurrency.Election',
  async version() {
    const [go, etcd] = await Promise.all([
      packageVersion('golang-go'),
      packageVersion('golang-etcd-server-dev'),
    ])
    return `${etcd} (Go ${go})`
  },
  isPresent: async () =>
    whatIsMissing({
      'golang-go': GO,
      'golang-etcd-server-dev': `${GOPATH}/src/go.etcd.io/etcd/clientv3/concurrency/election.go`,
    }),
  promises: [
    'one elected campaign per key order in etcd',
    'one lease per member',
    'a revision that rises with every election',
  ],
  doesNotPromise: [
    'that the old holder stops before the new one begins: it learns of a lost lease when its session ends',
    'that a resource refuses the old holder: the revision is not called a fencing token, and nothing checks it',
    'that a winner is alive: a waiter whose session has run out can return as elected',
    'a drain, a planned move or a balanced share',
  ],
  failoverPartitionsMax: FAILOVER_PARTITIONS_MAX,
  settleMs: 0,
  open: async (settings) => openEtcdStage(settings, [await compiled()]),
})

async function compiled(): Promise<string> {
  const source = createHash('sha256').update(readFileSync(SOURCE)).digest('hex').slice(0, 16)
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const folder = join(cache, 'tenure-bench')
  const program = join(folder, `go-election-member-${source}`)
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  await run(GO, ['build', '-o', program, SOURCE], {
    env: { ...process.env, GO111MODULE: 'off', GOPATH },
    timeout: BUILD_TIMEOUT_MS,
  })
  return program
}
