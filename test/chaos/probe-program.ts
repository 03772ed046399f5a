/**
 * What the machine itself gives: `probe-program.ts <input as JSON>`. How late it lets a process run that
 * wants next to nothing, and how long etcd takes for a commit that nothing waits for. Each goes into a file,
 * on the machine's clock.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { machineMs } from '../../src/dev/machine-time.ts'
import { createEtcdStore } from '../../src/etcd/etcd-store.ts'
import type { CommitLine, StallLine } from './machine-load.ts'

export type ProbeInput = { readonly file: string; readonly etcd: readonly string[] }

const EVERY_MS = 20
const STALL_WORTH_MS = 30
const COMMIT_EVERY_MS = 250
const COMMIT_TIMEOUT_MS = 10_000

const { file, etcd } = JSON.parse(process.argv[2] ?? '{}') as ProbeInput
const write = (line: StallLine | CommitLine) => appendFileSync(file, `${JSON.stringify(line)}\n`)
const store = createEtcdStore({ endpoints: etcd })
let dueMs = machineMs() + EVERY_MS
setInterval(() => {
  const nowMs = machineMs()
  if (nowMs - dueMs > STALL_WORTH_MS) write({ type: 'stall', fromMs: dueMs, toMs: nowMs })
  dueMs = nowMs + EVERY_MS
}, EVERY_MS)

for (;;) {
  const fromMs = machineMs()
  // Deletes a key that is never there: that passes through consensus and leaves no trace.
  await store.transact(
    { compare: [], success: [{ type: 'delete', key: '/chaos/probe' }], failure: [] },
    { timeoutMs: COMMIT_TIMEOUT_MS },
  )
  write({ type: 'commit', fromMs, toMs: machineMs() })
  await delay(COMMIT_EVERY_MS)
}
