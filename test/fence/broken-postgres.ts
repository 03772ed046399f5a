/**
 * The PostgreSQL fence, right (null) or broken in one way, on a real server:
 *
 *   check-outside-transaction   tenure_hold in a transaction of its own, the effect in the next one
 *   equal-generation-accepted   both functions without their comparison of the session
 *   lost-on-restart             the fence in an unlogged table, which a crash empties
 *   no-seal                     tenure_seal does nothing, and tenure_hold raises the mark by itself
 */
import { Pool, type PoolClient } from 'pg'
import { createPostgresFence, migrationSql, type PostgresEffect } from '../../src/fence/postgres.ts'
import { type FenceResource, ownerInProcess } from '../../src/testing/index.ts'
import { createDatabase, startPostgres } from '../support/postgres.ts'
import type { CleanUp } from '../support/servers.ts'
import { checkedOutside, mutated } from './checked-outside.ts'
import type { Break } from './memory-resource.ts'
import { createEffects, effectOf, isSealBlocked, readEffects } from './postgres-effects.ts'

const PARAMETERS = '(text, integer, bigint, bigint, text)'

export async function brokenPostgres(
  cleanUp: CleanUp,
  broken: Break | null,
): Promise<FenceResource> {
  const server = await startPostgres(cleanUp)
  const { url } = await createDatabase(server)
  const connect = () => {
    const pool = new Pool({ connectionString: url, max: 2 })
    pool.on('error', () => {})
    return pool
  }
  const pool = connect()
  await pool.query(sqlOf(broken))
  await createEffects(pool)
  return {
    async owner() {
      const own = connect()
      const right = createPostgresFence(own)
      const fence =
        broken === 'check-outside-transaction'
          ? checkedOutside(right, NOTHING, (_token, effect: Effect) => alone(own, effect))
          : right
      return ownerInProcess({ fence, effectOf, close: () => own.end() })
    },
    applied: (partition) => readEffects(pool, partition),
    sealWaits: (partition) => isSealBlocked(pool, partition),
    async restart() {
      await server.kill()
      await server.restart()
    },
    close: () => pool.end(),
  }
}

type Effect = PostgresEffect<unknown>
const NOTHING: Effect = async () => {}

async function alone(pool: Pool, effect: Effect): Promise<void> {
  const client: PoolClient = await pool.connect()
  try {
    await client.query('begin')
    await effect(client)
    await client.query('commit')
  } finally {
    client.release()
  }
}

function sqlOf(broken: Break | null): string {
  const sql = migrationSql()
  switch (broken) {
    case null:
    case 'check-outside-transaction':
      return sql
    case 'equal-generation-accepted': {
      const sealing = mutated(sql, 'or p_session is distinct from highest.session', '')
      return mutated(sealing, 'and f.session = p_session', '')
    }
    case 'lost-on-restart': {
      const table = 'table if not exists "public".tenure_fence'
      return mutated(sql, `create ${table}`, `create unlogged ${table}`)
    }
    case 'no-seal':
      return `${sql}
        alter function tenure_seal${PARAMETERS} rename to tenure_raise;
        drop procedure tenure_hold;
        create procedure tenure_hold${PARAMETERS} language sql
          as 'select tenure_raise($1, $2, $3, $4, $5)';
        create function tenure_seal${PARAMETERS} returns void language sql as '';`
    default:
      return broken satisfies never
  }
}
