/**
 * The protected resource: a table in PostgreSQL that each effect goes into, in the transaction that the
 * fence guards. The same table is the accept log. A seal is written into it by a trigger on the fence's
 * own row, so it stands in the log exactly if it was sealed.
 *
 * Order: `id` is drawn while the transaction holds the fence's row, so within a partition it is the order
 * in which the fence decided. Times: begin is the transaction's start and end its commit, both stamped by
 * PostgreSQL's clock and turned into the machine's monotonic one afterwards (machine-clock.ts). No worker
 * stamps anything that was accepted.
 */
import type { Pool, PoolClient } from 'pg'
import type { Token } from '../../src/core/token.ts'
import type { AcceptLine } from '../../src/evidence/accept-log.ts'
import { migrate } from '../../src/fence/postgres.ts'

export type Effect = {
  readonly input: string
  readonly key: string
  readonly sequence: number
}

/** Of an effect only. */
export type AcceptedEffect = Effect & { readonly partition: number }

export type Accepted = {
  readonly lines: readonly AcceptLine[]
  readonly effects: readonly AcceptedEffect[]
}

const TABLES = `
create table chaos_accept (
  id bigint generated always as identity primary key,
  partition integer not null,
  incarnation bigint not null,
  generation bigint not null,
  session text not null,
  input text,
  key text,
  sequence bigint,
  began_at timestamptz not null default transaction_timestamp()
);
create index on chaos_accept (began_at) where input is not null;
create index on chaos_accept (input) where input is not null;
create function chaos_log_seal() returns trigger language plpgsql as $$
begin
  insert into chaos_accept (partition, incarnation, generation, session)
    values (new.partition, new.incarnation, new.generation, new.session);
  return null;
end $$;
`
const TRIGGER = `
create trigger chaos_log_seal after insert or update on tenure_fence
  for each row execute function chaos_log_seal();
`

export async function createAcceptStore(pool: Pool): Promise<void> {
  await migrate(pool)
  await pool.query(TABLES + TRIGGER)
}

/** The guarded effect. */
export async function recordEffect(
  client: PoolClient,
  token: Token,
  { input, key, sequence }: Effect,
): Promise<void> {
  const { partition, incarnation, generation, session } = token
  await client.query(
    `insert into chaos_accept (partition, incarnation, generation, session, input, key, sequence)
      values ($1, $2, $3, $4, $5, $6, $7)`,
    [partition, incarnation, generation, session, input, key, sequence],
  )
}

type Row = {
  readonly partition: number
  readonly incarnation: string
  readonly generation: string
  readonly session: string
  readonly input: string | null
  readonly key: string | null
  readonly sequence: string | null
  readonly began: number
  readonly ended: number
}

/** @param toMachineMs from PostgreSQL's wall time */
export async function readAccepted(
  pool: Pool,
  toMachineMs: (wallMs: number) => number,
): Promise<Accepted> {
  const { rows } = await pool.query<Row>(
    `select partition, incarnation, generation, session, input, key, sequence,
        extract(epoch from began_at)::float8 * 1000 as began,
        extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 as ended
      from chaos_accept order by id`,
  )
  const lines = rows.map((row): AcceptLine => {
    const token = {
      partition: row.partition,
      incarnation: Number(row.incarnation),
      generation: Number(row.generation),
      session: row.session,
    }
    const endMs = toMachineMs(row.ended)
    if (row.input === null) return { type: 'sealed', token, atMs: endMs }
    const beginMs = toMachineMs(row.began)
    return { type: 'effect', token, input: row.input, beginMs, endMs, outcome: 'applied' }
  })
  const effects = rows.flatMap(({ partition, input, key, sequence }): AcceptedEffect[] =>
    input === null || key === null ? [] : [{ partition, input, key, sequence: Number(sequence) }],
  )
  return { lines, effects }
}

/** Those of the inputs that have no effect yet. */
export async function withoutEffect(
  pool: Pool,
  inputs: readonly string[],
): Promise<readonly string[]> {
  const { rows } = await pool.query<{ input: string }>(
    `select wanted.input from unnest($1::text[]) as wanted (input)
      where not exists (select from chaos_accept done where done.input = wanted.input)`,
    [inputs],
  )
  return rows.map(({ input }) => input)
}

/** Partitions with an effect begun since the wall time. */
export async function countProgressing(pool: Pool, sinceWallMs: number): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(
    `select count(distinct partition) from chaos_accept
      where input is not null and began_at > to_timestamp($1::float8 / 1000)`,
    [sinceWallMs],
  )
  return Number(rows[0]?.count ?? 0)
}
