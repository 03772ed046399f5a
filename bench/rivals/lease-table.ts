/**
 * A lease table on PostgreSQL, the recipe that many write themselves: a row per partition with its owner
 * and when its lease runs out by the server's clock. The server flushes each commit, as by default.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { machineMs } from '../../src/dev/machine-time.ts'
import { findPostgresFolder, startPostgresServer } from '../../src/dev/postgres-server.ts'
import { createRival } from './create-rival.ts'
import { typescriptProgram } from './programs.ts'
import type { Stage, StageSettings } from './rival-kind.ts'

const run = promisify(execFile)
const FLUSHING = ['-c', 'fsync=on', '-c', 'full_page_writes=on']

export const leaseTable = createRival({
  name: 'lease table on PostgreSQL',
  async version() {
    const { stdout } = await run(join(findPostgresFolder(), 'postgres'), ['--version'])
    return stdout.trim()
  },
  async isPresent() {
    try {
      findPostgresFolder()
      return null
    } catch (error: unknown) {
      return error instanceof Error ? error.message : String(error)
    }
  },
  promises: [
    'one owner per row and moment of the database',
    'a generation that rises with every change of owner',
  ],
  doesNotPromise: [
    'that the old owner stops before the new one begins: it believes until its next renewal',
    'that a resource refuses the old owner: outside this database nothing checks the generation',
    'a drain, a planned move or a balanced share',
    'that somebody is told of a change: members poll',
  ],
  failoverPartitionsMax: Number.POSITIVE_INFINITY,
  settleMs: 0,
  open: openStage,
})

async function openStage({ folder, partitions }: StageSettings): Promise<Stage> {
  const server = await startPostgresServer({ directory: folder, extraArgs: FLUSHING })
  const client = new pg.Client(server.url)
  await client.connect()
  await client.query(
    `CREATE TABLE lease (partition int PRIMARY KEY, owner text, generation bigint NOT NULL,
      expires_at timestamptz NOT NULL)`,
  )
  await client.query(
    `INSERT INTO lease SELECT partition, NULL, 0, '-infinity'
      FROM generate_series(0, $1::int - 1) AS partition`,
    [partitions],
  )
  return {
    command: await typescriptProgram('lease-table-member.ts'),
    store: server.url,
    async watchExpiry(member) {
      return async () => {
        const { rows } = await client.query<{ left_ms: string | null }>(
          `SELECT 1000 * extract(epoch FROM max(expires_at) - clock_timestamp()) AS left_ms
            FROM lease WHERE owner = $1`,
          [member],
        )
        return machineMs() + Number(rows[0]?.left_ms ?? 0)
      }
    },
    async close() {
      await client.end()
      await server.stop()
    },
  }
}
