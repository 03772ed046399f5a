/**
 * redis-server as a child of this process, on a free loopback port, for tests and demos. See
 * `servers-process.ts` for why none is ever left behind. Every write is on disk before it is answered,
 * since a fence is as durable as its server.
 */
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { findServerProgram } from './servers-binaries.ts'
import { findFreePorts, type ServerProcess, startServerProcess } from './servers-process.ts'

export type RedisServer = ServerProcess & {
  /** `redis://127.0.0.1:port`. */
  readonly url: string
  readonly port: number
}

export type RedisServerOptions = {
  /** Holds data and log; made when missing. Data found there is used again. */
  readonly directory: string
  readonly binary?: string
  readonly port?: number
  /** As on the command line: `['--maxmemory-policy', 'allkeys-lru']`. */
  readonly extraArgs?: readonly string[]
}

const PROBE_TIMEOUT_MS = 1000

/** @throws TenureError `binary-missing`, `timed-out`, or `conflict` when redis-server ends at start. */
export async function startRedisServer(options: RedisServerOptions): Promise<RedisServer> {
  const program = findServerProgram('redis-server', options.binary)
  const [freePort = 0] = await findFreePorts(1)
  const port = options.port ?? freePort
  mkdirSync(options.directory, { recursive: true })
  const server = await startServerProcess({
    name: 'redis-server',
    program,
    args: [
      ...['--bind', '127.0.0.1', '--port', String(port), '--daemonize', 'no'],
      ...['--dir', options.directory, '--appendonly', 'yes', '--appendfsync', 'always'],
      ...['--save', '', ...(options.extraArgs ?? [])],
    ],
    workingFolder: options.directory,
    ports: [port],
    logFile: `${options.directory}/redis-server.log`,
    isReady: () => redisAnswers(port),
  })
  return { ...server, url: `redis://127.0.0.1:${port}`, port }
}

/** A server that still loads its data answers with an error. */
async function redisAnswers(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error('no answer')))
  try {
    await once(socket, 'connect')
    socket.write('PING\r\n')
    const [answer] = await once(socket, 'data')
    return String(answer).startsWith('+PONG')
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
