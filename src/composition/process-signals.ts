/**
 * The process's signals, for all workers in it together.
 *
 *   first SIGTERM or SIGINT: every worker drains and hands over
 *   second: what is left is given up at once
 *   done after a signal, yet work still runs (given up, or past the drain's deadline): exit 70
 *   uncaught exception: sessions are closed at once, then exit 1
 *   a worker evicted: exit 70, for ending a gate does not end code that already runs
 */
import { isTenureError } from '../core/tenure-error.ts'
import type { Worker } from '../runtime/worker-options.ts'

/** Exit code of a process that was forced out. */
export const EXIT_FORCED = 70
/** How long closing sessions may take before the process ends anyway. */
const LAST_WORDS_MS = 1000

const workers = new Set<Worker>()
let signalled = 0

/** Watches over the worker until it is done. */
export function followSignals(worker: Worker): void {
  if (workers.size === 0) install()
  workers.add(worker)
  const forget = () => {
    workers.delete(worker)
    if (workers.size === 0) uninstall()
  }
  const ended = () => {
    forget()
    if (signalled > 0) exitUnlessSettled(worker)
  }
  worker.done.then(ended, (error: unknown) => {
    forget()
    if (!isTenureError(error, 'evicted')) return
    process.once('exit', nameForced)
    setTimeout(() => process.exit(EXIT_FORCED), LAST_WORDS_MS).unref()
  })
}

/** Work that was given up may never end, and would keep the process, which was told to end, for ever. */
function exitUnlessSettled(worker: Worker): void {
  const look = () => {
    if (worker.unsettled > 0) process.exit(EXIT_FORCED)
  }
  setTimeout(look, LAST_WORDS_MS).unref()
}

/** `await worker.done` rejects, which alone would end the process with 1: that says too little. */
function nameForced(code: number): void {
  if (code === 0 || code === 1) process.exitCode = EXIT_FORCED
}

function install(): void {
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  process.on('uncaughtException', onCrash)
}

function uninstall(): void {
  process.off('SIGTERM', onSignal)
  process.off('SIGINT', onSignal)
  process.off('uncaughtException', onCrash)
}

function onSignal(): void {
  signalled += 1
  stopAll(signalled > 1)
}

function onCrash(error: unknown): void {
  console.error(error)
  process.exitCode = 1
  setTimeout(() => process.exit(1), LAST_WORDS_MS)
  stopAll(true)
  void Promise.allSettled([...workers].map((worker) => worker.done)).then(() => process.exit(1))
}

function stopAll(force: boolean): void {
  for (const worker of workers) worker.stop({ force }).catch(() => {})
}
