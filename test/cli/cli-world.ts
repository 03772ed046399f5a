/** The command line inside a test: what it may touch of the world is given, what it wrote is kept. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { CommandImplementations } from '../../src/cli/commands.ts'
import type { CliContext } from '../../src/cli/context.ts'
import { runCli } from '../../src/cli/run-cli.ts'
import { systemClock } from '../http/served-group.ts'
import type { CleanUp } from '../support/servers.ts'

export type World = {
  readonly variables?: Readonly<Record<string, string>>
  readonly files?: Readonly<Record<string, string>>
  readonly implementations?: Partial<CommandImplementations>
  readonly interrupted?: AbortSignal
  readonly isTTY?: boolean
  readonly livingProcesses?: readonly number[]
  /** Called with each piece written. */
  readonly onWrite?: (text: string) => void
}

export type Run = { readonly exitCode: number; readonly stdout: string; readonly stderr: string }

export async function run(words: readonly string[], world: World = {}): Promise<Run> {
  let stdout = ''
  let stderr = ''
  const isTTY = world.isTTY ?? false
  const context: CliContext = {
    stdout: {
      isTTY,
      write: (text) => {
        stdout += text
        world.onWrite?.(text)
      },
    },
    stderr: {
      isTTY,
      write: (text) => {
        stderr += text
        world.onWrite?.(text)
      },
    },
    variables: world.variables ?? {},
    workingFolder: '/work-folder',
    version: '1.2.3',
    operator: 'ann@test',
    clock: systemClock,
    interrupted: world.interrupted ?? new AbortController().signal,
    readFile: (path) => {
      const text = world.files?.[path]
      if (text !== undefined) return text
      throw Object.assign(new Error(`no ${path}`), { code: 'ENOENT' })
    },
    isProcessAlive: (pid) => world.livingProcesses?.includes(pid) ?? false,
  }
  const implementations: CommandImplementations = {
    serve: async () => 0,
    worker: async () => 0,
    dev: async () => 0,
    openStore: () => Promise.reject(new Error('this test has no store')),
    findProgram: () => Promise.reject(new Error('this test has no programs')),
    ...world.implementations,
  }
  const exitCode = await runCli(words, context, implementations)
  return { exitCode, stdout, stderr }
}

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const TSX = fileURLToPath(new URL('../../node_modules/tsx/dist/cli.mjs', import.meta.url))

/** The real program as a child process, in an empty environment but for PATH and what is given. */
export function start(words: readonly string[], folder: string, variables: Record<string, string>) {
  const child = spawn(process.execPath, [TSX, MAIN, ...words], {
    cwd: folder,
    env: { PATH: process.env['PATH'], ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (bytes) => {
    stdout += bytes
  })
  child.stderr.on('data', (bytes) => {
    stderr += bytes
  })
  const ended = once(child, 'close').then(
    ([exitCode]): Run => ({ exitCode: exitCode as number, stdout, stderr }),
  )
  return { child, ended, stdout: () => stdout, stderr: () => stderr }
}

export type Canned = {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}
export type Received = { readonly method: string; readonly url: string; readonly token: string }

/** A server that answers what `reply` says and keeps what it was asked. */
export async function serveCanned(
  cleanUp: CleanUp,
  reply: (request: Received) => Canned,
): Promise<{ readonly url: string; readonly received: readonly Received[] }> {
  const received: Received[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const asked: Received = {
      method: request.method ?? '',
      url: request.url ?? '',
      token: request.headers.authorization ?? '',
    }
    received.push(asked)
    const { status, body, headers } = reply(asked)
    const type = status >= 400 ? 'application/problem+json' : 'application/json'
    response.writeHead(status, { 'content-type': type, ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}

export function problem(status: number, code: string, detail: string): Canned {
  return { status, body: { type: `urn:${code}`, title: code, status, code, detail } }
}
