#!/usr/bin/env node
/**
 * Entry of the command line and its composition root: the world as it is, and which module does what.
 * Adapters and servers are loaded only by the command that needs them.
 */
import { readFileSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import type { CommandImplementations } from './cli/commands.ts'
import type { CliContext, OutputStream } from './cli/context.ts'
import { runCli } from './cli/run-cli.ts'
import { packageVersion } from './composition/package-version.ts'
import { createSystemClock } from './host/system-clock.ts'

const implementations: CommandImplementations = {
  serve: async (config, stop) => (await import('./composition/serve.ts')).runServe(config, stop),
  worker: async (config, start, stop) =>
    (await import('./composition/worker-command.ts')).runWorker(config, start, stop),
  dev: async (options, stop) => (await import('./dev/dev.ts')).runDev(options, stop),
  bench: async (request, stop) =>
    (await import('./bench/answer-bench.ts')).answerBench(request, stop),
  readHistory: async (config, group) =>
    (await import('./composition/read-history.ts')).readHistory(config, group),
  openStore: async (config) => {
    const { createEtcdStore } = await import('./etcd/etcd-store.ts')
    return createEtcdStore(config.etcd)
  },
  findProgram: async (name) => {
    const { findServerProgram } = await import('./dev/servers-binaries.ts')
    return findServerProgram(name)
  },
}

const interrupted = new AbortController()
// Once: a second signal ends the process as the system does by default.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interrupted.abort())
}
// A reader that has seen enough (`tenure watch | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

const context: CliContext = {
  stdout: outputStream(process.stdout),
  stderr: outputStream(process.stderr),
  variables: process.env,
  workingFolder: process.cwd(),
  version: packageVersion(),
  operator: `${userName()}@${hostname()}`,
  clock: createSystemClock(),
  interrupted: interrupted.signal,
  readFile: (path) => readFileSync(path, 'utf8'),
  isProcessAlive,
}

process.exitCode = await runCli(process.argv.slice(2), context, implementations)

function outputStream(stream: NodeJS.WriteStream): OutputStream {
  return { write: (text) => void stream.write(text), isTTY: stream.isTTY === true }
}

/** A container's user may have no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? '?'}`
  }
}

function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
