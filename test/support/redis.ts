/** redis-server and clients of it for tests, ended with the test or the file. See `servers.ts`. */
import { Cluster, Redis } from 'ioredis'
import {
  type RedisServer,
  type RedisServerOptions,
  startRedisServer,
} from '../../src/dev/redis-server.ts'
import { type CleanUp, temporaryFolder } from './servers.ts'

export async function startRedis(
  cleanUp: CleanUp,
  options: Partial<RedisServerOptions> = {},
): Promise<RedisServer> {
  let server: RedisServer | null = null
  // Hooks run in the order they came: the server ends before its folder goes.
  cleanUp.after(() => server?.stop())
  const directory = options.directory ?? (await temporaryFolder(cleanUp))
  server = await startRedisServer({ ...options, directory })
  return server
}

/** Options of a client that tests change. */
export type RedisClientOptions = {
  readonly autoResendUnfulfilledCommands?: boolean
  readonly keyPrefix?: string
  readonly maxRetriesPerRequest?: number
}

/** A client that sends nothing twice, as fences want it. */
export function connectRedis(
  cleanUp: CleanUp,
  server: Pick<RedisServer, 'port'>,
  options: RedisClientOptions = {},
): Redis {
  const where = { host: '127.0.0.1', port: server.port }
  const client = new Redis({ autoResendUnfulfilledCommands: false, ...options, ...where })
  // Broken connections are what some tests are about; calls report them.
  client.on('error', () => {})
  cleanUp.after(() => client.disconnect())
  return client
}

export function connectRedisCluster(
  cleanUp: CleanUp,
  server: Pick<RedisServer, 'port'>,
  options: { readonly retryDelayOnFailover?: number },
): Cluster {
  const client = new Cluster([{ host: '127.0.0.1', port: server.port }], {
    redisOptions: { autoResendUnfulfilledCommands: false },
    ...options,
  })
  client.on('error', () => {})
  cleanUp.after(() => client.disconnect())
  return client
}
