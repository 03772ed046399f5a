/**
 * Measures how late the machine lets a process run that wants next to nothing: `stall-program.ts FILE`.
 * Each delay worth a line goes into the file, on the machine's clock.
 */
import { appendFileSync } from 'node:fs'
import { machineMs } from '../../src/dev/machine-time.ts'

export type Stall = { readonly fromMs: number; readonly toMs: number }

const EVERY_MS = 20
const WORTH_MS = 100
const file = process.argv[2] ?? ''
let dueMs = machineMs() + EVERY_MS

setInterval(() => {
  const nowMs = machineMs()
  if (nowMs - dueMs > WORTH_MS) {
    const stall: Stall = { fromMs: dueMs, toMs: nowMs }
    appendFileSync(file, `${JSON.stringify(stall)}\n`)
  }
  dueMs = nowMs + EVERY_MS
}, EVERY_MS)
