/** The list that effects of the conformance suite append to, in PostgreSQL. */
import type { Pool, PoolClient } from 'pg'
import type { Token } from '../../src/core/token.ts'
import type { AppliedEffect, EffectStep } from '../../src/testing/index.ts'

export async function createEffects(pool: Pool): Promise<void> {
  await pool.query(`create table effects (id bigint generated always as identity, partition int,
    incarnation bigint, generation bigint, session text, number int)`)
}

export function effectOf(token: Token, number: number, step: EffectStep) {
  return async (client: PoolClient): Promise<void> => {
    await step('checked')
    await client.query(
      'insert into effects (partition, incarnation, generation, session, number) values ($1, $2, $3, $4, $5)',
      [token.partition, token.incarnation, token.generation, token.session, number],
    )
    await step('written')
  }
}

export async function readEffects(
  pool: Pool,
  partition: number,
): Promise<readonly AppliedEffect[]> {
  const { rows } = await pool.query<Record<keyof AppliedEffect, string>>(
    'select incarnation, generation, session, number from effects where partition = $1 order by id',
    [partition],
  )
  return rows.map((row) => ({
    incarnation: Number(row.incarnation),
    generation: Number(row.generation),
    session: row.session,
    number: Number(row.number),
  }))
}

/**
 * Whether a session waits for the partition's lock, and one that holds it stands idle in a transaction: only
 * the client of that one can end the wait.
 */
export async function isSealBlocked(pool: Pool, partition: number): Promise<boolean> {
  const { rows } = await pool.query(
    `select 1 from pg_locks waiting
      join pg_stat_activity holder on holder.pid = any (pg_blocking_pids(waiting.pid))
      where waiting.locktype = 'advisory' and not waiting.granted and waiting.objid = $1
        and holder.state = 'idle in transaction' limit 1`,
    [partition],
  )
  return rows.length > 0
}
