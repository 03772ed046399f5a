/** PostgreSQL and pools on it for tests, ended with the test or the file. See `servers.ts`. */
import { Pool, type PoolConfig } from 'pg'
import {
  type PostgresServer,
  type PostgresServerOptions,
  startPostgresServer,
} from '../../src/dev/postgres-server.ts'
import { type CleanUp, temporaryFolder } from './servers.ts'

export async function startPostgres(
  cleanUp: CleanUp,
  options: Partial<PostgresServerOptions> = {},
): Promise<PostgresServer> {
  let server: PostgresServer | null = null
  // Hooks run in the order they came: the server ends before its folder goes.
  cleanUp.after(() => server?.stop())
  const directory = options.directory ?? (await temporaryFolder(cleanUp))
  server = await startPostgresServer({ ...options, directory })
  return server
}

export function connectPostgres(
  cleanUp: CleanUp,
  server: Pick<PostgresServer, 'url'>,
  options: PoolConfig = {},
): Pool {
  const pool = new Pool({ connectionString: server.url, ...options })
  // Broken connections are what some tests are about; calls report them.
  pool.on('error', () => {})
  cleanUp.after(() => pool.end())
  return pool
}

let databases = 0

/** An empty database of its own on the server, by its URL. */
export async function createDatabase(
  server: Pick<PostgresServer, 'url'>,
): Promise<{ url: string }> {
  databases += 1
  const name = `test_${databases}`
  const pool = new Pool({ connectionString: server.url, max: 1 })
  try {
    await pool.query(`create database ${name}`)
  } finally {
    await pool.end()
  }
  return { url: server.url.replace(/postgres$/, name) }
}
