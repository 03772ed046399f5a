/**
 * The process's signals, for all workers in it together.
 *
 *   first SIGTERM or SIGINT: every worker drains and hands over
 *   second: what is left is given up at once
 *   uncaught exception: sessions are closed at once, then exit 1
 *   a worker evicted: exit 70, for ending a gate does not end code that already runs
 */
import { isTenureError } from '../core/tenure-error.ts'
import type { Worker } from '../runtime/worker-options.ts'

/** Exit code of a process that was forced out. */
export const EXIT_EVICTED = 70
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
  worker.done.then(forget, (error: unknown) => {
    forget()
    if (!isTenureError(error, 'evicted')) return
    process.exitCode = EXIT_EVICTED
    setTimeout(() => process.exit(EXIT_EVICTED), LAST_WORDS_MS).unref()
  })
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
