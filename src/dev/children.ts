/**
 * The demo's own processes, each a child that never outlives this one (servers-process.ts): the program's
 * command line (`serve`, `worker`), and the two roles that are not of the product (ledger, producer).
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServerProcess } from './servers-process.ts'
import { startServerProcess } from './servers-process.ts'

export type ChildOptions = {
  readonly name: string
  readonly logFolder: string
  readonly ports?: readonly number[]
  readonly environment?: NodeJS.ProcessEnv
  readonly isReady: () => Promise<boolean>
  /** Default: as `startServerProcess`. */
  readonly readyTimeoutMs?: number
}

/** In a build these files end in `.js`, as this one does. */
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/** `tenure <words>` as a child. */
export function startTenure(
  words: readonly string[],
  options: ChildOptions,
): Promise<ServerProcess> {
  return start(fileURLToPath(new URL(`../main${EXTENSION}`, import.meta.url)), words, options)
}

/** A role of the demo as a child, its options as JSON. */
export function startRole(
  role: 'ledger' | 'producer',
  roleOptions: unknown,
  options: ChildOptions,
): Promise<ServerProcess> {
  const program = fileURLToPath(new URL(`./role${EXTENSION}`, import.meta.url))
  return start(program, [role, JSON.stringify(roleOptions)], options)
}

function start(
  program: string,
  words: readonly string[],
  options: ChildOptions,
): Promise<ServerProcess> {
  return startServerProcess({
    name: options.name,
    program: process.execPath,
    // With the loader that this process runs under, if any.
    args: [...process.execArgv, program, ...words],
    environment: { ...process.env, ...options.environment },
    ports: options.ports ?? [],
    logFile: join(options.logFolder, `${options.name}.log`),
    isReady: options.isReady,
    ...(options.readyTimeoutMs === undefined ? {} : { readyTimeoutMs: options.readyTimeoutMs }),
  })
}
