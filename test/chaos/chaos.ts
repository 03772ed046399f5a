/**
 * `npm run chaos`: real servers and workers, each in a network namespace of its own, under faults drawn
 * from a seed; then the evidence is judged. README says how to run it.
 *
 *   options → can it be had here? → network → run-program inside the bridge's namespace → network gone
 *
 * Exit codes: 0 passed (or skipped, where that was asked for), 1 a promise was broken or the run showed
 * nothing, 2 wrong words or no namespaces here, 3 the machine itself stalled too much to judge.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLayout } from './layout.ts'
import {
  createNetwork,
  findObstacle,
  namespacePrefix,
  systemEnvironment,
  within,
} from './network.ts'
import { type ChaosOptions, readOptions, USAGE } from './options.ts'
import type { RunInput } from './run-program.ts'

process.exitCode = await main(process.argv.slice(2))

async function main(words: readonly string[]): Promise<number> {
  let options: ChaosOptions
  try {
    options = readOptions(words)
  } catch (error: unknown) {
    console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`)
    return 2
  }
  const obstacle = findObstacle()
  if (obstacle !== null) {
    if (options.skipIfImpossible) {
      console.log(`skipped: ${obstacle}`)
      return 0
    }
    console.error(`chaos cannot run: ${obstacle}`)
    return 2
  }
  return runInNetwork(options)
}

async function runInNetwork(options: ChaosOptions): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-chaos-'))
  // PostgreSQL runs as another user, who must get through.
  chmodSync(folder, 0o711)
  const network = await createNetwork(createLayout(namespacePrefix(options.seed)))
  try {
    const code = await runInside(options, folder, network.layout)
    if (code === 0 && !options.keep) rmSync(folder, { recursive: true, force: true })
    else console.log(`logs and evidence: ${folder}`)
    return code
  } finally {
    await network.remove()
  }
}

async function runInside(
  options: ChaosOptions,
  folder: string,
  layout: RunInput['layout'],
): Promise<number> {
  const input: RunInput = { options, folder, layout }
  const [program = '', ...entering] = within(layout.hub.namespace)
  const run = fileURLToPath(new URL('./run-program.ts', import.meta.url))
  const child = spawn(
    program,
    [...entering, process.execPath, ...process.execArgv, run, JSON.stringify(input)],
    { stdio: 'inherit', env: systemEnvironment() },
  )
  // A terminal's Ctrl-C reaches the child too, which then stops its servers in order.
  const ignore = () => {}
  const pass = () => child.kill('SIGTERM')
  process.on('SIGINT', ignore)
  process.on('SIGTERM', pass)
  const [code] = (await once(child, 'close')) as [number | null]
  process.off('SIGINT', ignore)
  process.off('SIGTERM', pass)
  return code ?? 1
}
