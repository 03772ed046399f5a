/**
 * Finds the server programs on this machine. Nothing is ever downloaded: what is missing is named,
 * with the command that installs it.
 */
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createTenureError } from '../core/tenure-error.ts'

export type ServerProgram = 'etcd' | 'nats-server' | 'redis-server'

const VARIABLE: Readonly<Record<ServerProgram, string>> = {
  etcd: 'TENURE_ETCD_BIN',
  'nats-server': 'TENURE_NATS_BIN',
  'redis-server': 'TENURE_REDIS_BIN',
}

/** Debian puts nats-server where the PATH of a user often does not reach. */
const USUAL_FOLDERS = ['/usr/sbin', '/usr/bin', '/usr/local/bin', '/opt/homebrew/bin']

/**
 * Path of the program: the one given, or named by a variable such as `TENURE_ETCD_BIN`, or found on
 * PATH, or in one of the usual folders, in this order.
 *
 * @throws TenureError `binary-missing`, with the remedy. A path that was named and is no program is
 *   an error too: silently starting another one would surprise.
 */
export function findServerProgram(
  program: ServerProgram,
  given?: string,
  environment: NodeJS.ProcessEnv = process.env,
): string {
  const variable = VARIABLE[program]
  const named = given ?? environment[variable]
  if (named !== undefined && named !== '') {
    if (isProgram(named)) return named
    throw createTenureError('binary-missing', `${named} is not a program that can be run`, {
      details: { program, path: named },
    })
  }
  const folders = (environment['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const found = [...folders, ...USUAL_FOLDERS]
    .map((folder) => join(folder, program))
    .find(isProgram)
  if (found !== undefined) return found
  throw createTenureError(
    'binary-missing',
    `${program} was not found. Run "bash deploy/setup.sh", or name its path in ${variable}.`,
    { details: { program } },
  )
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
