/**
 * PostgreSQL as a child of this process, on a free loopback port, for tests and demos. See
 * `servers-process.ts` for why none is ever left behind.
 *
 * PostgreSQL refuses to run as root: started by root, it runs as the user `postgres`, or `nobody` where
 * there is none. Data is flushed to the operating system only: it survives a crash of the server, and not
 * one of the machine.
 */
import { execFile } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { createTenureError } from '../core/tenure-error.ts'
import { findFreePorts, type ServerProcess, startServerProcess } from './servers-process.ts'

export type PostgresServer = ServerProcess & {
  /** `postgres://postgres@127.0.0.1:port/postgres`, without a password. */
  readonly url: string
  readonly port: number
}

export type PostgresServerOptions = {
  /** Holds data and log; made when missing. Data found there is used again. */
  readonly directory: string
  /** Folder with `initdb` and `postgres`. */
  readonly binaryFolder?: string
  readonly port?: number
  /** Address that it listens on [127.0.0.1]. */
  readonly host?: string
  /** Words before the server's own, for a program that becomes it: `['nsenter', '--net=…', '--']`. */
  readonly within?: readonly string[]
  /** As on the command line: `['-c', 'max_connections=20']`. */
  readonly extraArgs?: readonly string[]
}

type Account = { readonly user: number; readonly group: number }

const run = promisify(execFile)
const LOOPBACK = '127.0.0.1'
const PROBE_TIMEOUT_MS = 1000
/** Folders of a version each, the newest taken. */
const PACKAGE_FOLDERS = [
  { parent: '/usr/lib/postgresql', name: /^(\d+)$/ },
  { parent: '/opt/homebrew/opt', name: /^postgresql@(\d+)$/ },
]

/**
 * `stop` ends open transactions too; `kill` ends the server as a crash does, and the next start recovers
 * from its log.
 *
 * @throws TenureError `binary-missing`, `timed-out`, or `conflict` when PostgreSQL ends at start.
 */
export async function startPostgresServer(options: PostgresServerOptions): Promise<PostgresServer> {
  const folder = findPostgresFolder(options.binaryFolder)
  const [freePort = 0] = await findFreePorts(1)
  const port = options.port ?? freePort
  const host = options.host ?? LOOPBACK
  const account = unprivilegedAccount()
  const data = join(options.directory, 'data')
  await prepareData(options.directory, data, folder, account)
  const command = asAccount(account, [
    ...[join(folder, 'postgres'), '-D', data, '-h', host, '-p', String(port), '-k', data],
    ...['-F', '-c', 'full_page_writes=off', ...(options.extraArgs ?? [])],
  ])
  const [program = '', ...args] = [...(options.within ?? []), ...command]
  const server = await startServerProcess({
    name: 'postgres',
    program,
    args,
    workingFolder: data,
    // Elsewhere than on this host's loopback a taken port shows when the server starts.
    ports: host === LOOPBACK ? [port] : [],
    logFile: join(options.directory, 'postgres.log'),
    isReady: () => postgresAnswers(folder, host, port),
  })
  const url = `postgres://postgres@${host}:${port}/postgres`
  return { ...server, ...ending(server), url, port }
}

/** SIGTERM alone, which `stop` sends, would wait for clients to leave. */
function ending(server: ServerProcess): Pick<ServerProcess, 'stop' | 'kill' | 'restart'> {
  const end = async (signal: 'SIGINT' | 'SIGQUIT') => {
    const pid = server.pid()
    if (pid !== 0) process.kill(pid, signal)
    await server.stop()
  }
  return {
    stop: () => end('SIGINT'),
    kill: () => end('SIGQUIT'),
    async restart() {
      await end('SIGINT')
      await server.restart()
    },
  }
}

/** @throws TenureError `binary-missing`, with the remedy. */
export function findPostgresFolder(given?: string): string {
  const named = given ?? process.env['TENURE_POSTGRES_BIN']
  if (named !== undefined && named !== '') {
    if (hasPrograms(named)) return named
    throw createTenureError('binary-missing', `${named} does not hold initdb and postgres`, {
      details: { path: named },
    })
  }
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const found = [...packagedFolders(), ...path].find(hasPrograms)
  if (found !== undefined) return found
  throw createTenureError(
    'binary-missing',
    'PostgreSQL was not found. Run "TENURE_SETUP=test bash deploy/setup.sh", or name the folder with initdb and postgres in TENURE_POSTGRES_BIN.',
    { details: { program: 'postgres' } },
  )
}

function packagedFolders(): readonly string[] {
  return PACKAGE_FOLDERS.flatMap(({ parent, name }) => {
    if (!existsSync(parent)) return []
    return readdirSync(parent)
      .flatMap((entry) => {
        const version = name.exec(entry)?.[1]
        return version === undefined ? [] : [{ entry, version: Number(version) }]
      })
      .sort((a, b) => b.version - a.version)
      .map(({ entry }) => join(parent, entry, 'bin'))
  })
}

function hasPrograms(folder: string): boolean {
  return ['initdb', 'postgres', 'pg_isready'].every((program) => existsSync(join(folder, program)))
}

/** Null when this process is unprivileged itself. */
function unprivilegedAccount(): Account | null {
  if (process.getuid?.() !== 0) return null
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const fields = accounts.find((line) => line.startsWith(`${name}:`))?.split(':') ?? []
    if (fields.length > 3) return { user: Number(fields[2]), group: Number(fields[3]) }
  }
  throw createTenureError('conflict', 'PostgreSQL does not run as root, and there is no other user')
}

/** `setpriv` becomes the program, so that the process id is that of the server. */
function asAccount(account: Account | null, command: readonly string[]): readonly string[] {
  if (account === null) return command
  const { user, group } = account
  return ['setpriv', `--reuid=${user}`, `--regid=${group}`, '--clear-groups', '--', ...command]
}

async function prepareData(
  directory: string,
  data: string,
  folder: string,
  account: Account | null,
): Promise<void> {
  mkdirSync(data, { recursive: true, mode: 0o700 })
  if (account !== null) {
    // The server's user must get through the folder, and owns what is inside.
    chmodSync(directory, 0o711)
    chownSync(data, account.user, account.group)
  }
  if (existsSync(join(data, 'PG_VERSION'))) return
  const [program = '', ...args] = asAccount(account, [
    ...[join(folder, 'initdb'), '-D', data, '-U', 'postgres', '-A', 'trust'],
    ...['--no-sync', '-E', 'UTF8', '--locale=C'],
  ])
  await run(program, args, { cwd: data })
}

async function postgresAnswers(folder: string, host: string, port: number): Promise<boolean> {
  const args = ['-q', '-h', host, '-p', String(port), '-t', '1']
  try {
    await run(join(folder, 'pg_isready'), args, { timeout: PROBE_TIMEOUT_MS })
    return true
  } catch {
    return false
  }
}
