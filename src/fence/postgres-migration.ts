/**
 * The tables and functions of the PostgreSQL fence. `migrate` may run at every start, by many processes at
 * once; it changes nothing that stands. Programs in other languages use the same two:
 *
 *   select tenure_seal('orders', 17, 1764440000, 5, '00c0ffee00c0ffee');   -- at once after a grant
 *   begin;
 *   call tenure_hold('orders', 17, 1764440000, 5, '00c0ffee00c0ffee');     -- then the effect
 *   commit;
 *
 * tenure_guard is tenure_hold as a function, where only a query can be sent. A function answers with a row,
 * whose way through server and client costs a small transaction 6 parts of 100; so do a statement that need
 * not be one (PERFORM instead of an expression) and a row where a boolean is enough.
 *
 * Both raise SQLSTATE TN001 (stale: a newer owner has sealed) or TN002 (unsealed: seal first), so that no
 * effect can follow by neglect. DETAIL is the highest token as JSON, or null. The view `tenure_refusals`
 * counts both; they are sequences, so a rolled-back refusal counts, and after a crash of the server the
 * count may be somewhat too high.
 *
 * Both take an advisory lock of the transaction first, tenure_hold a shared one: its queue is fair, while
 * sharers of a row could keep a seal waiting for ever, since PostgreSQL lets a new one pass those that
 * wait. Under `read committed` that lock is enough: the statement that reads the fence comes after it, on a
 * snapshot of its own. Under the other levels the snapshot may be older than a seal, so tenure_hold locks
 * the row FOR SHARE too, which PostgreSQL refuses then. Not always: it writes, and sixteen at once on one
 * partition paid double for it.
 */
import type { Pool } from 'pg'
import { schemaNameOf } from './postgres-names.ts'
import { inTransaction } from './postgres-transaction.ts'

/** Version of what {@link migrationSql} makes. */
export const POSTGRES_SCHEMA_VERSION = 1

/** Any number that all migrations share: two at once would trip over `if not exists`. */
const MIGRATION_LOCK = 7_463_652_071

/**
 * Makes what the fence needs, in one transaction.
 *
 * @throws TenureError `invalid-argument`, `store-unreachable`, `fence-not-ready`
 * @example await migrate(pool, { schema: 'app' })
 */
export async function migrate(
  pool: Pick<Pool, 'connect'>,
  options: { readonly schema?: string } = {},
): Promise<void> {
  const sql = migrationSql(options.schema)
  await inTransaction(pool, { isolation: 'read committed', idleTimeoutMs: 0 }, (client) =>
    client.query(sql),
  )
}

/** The same as text, for a migration tool. @param schema [`public`] */
export function migrationSql(schema?: string): string {
  const s = schemaNameOf(schema)
  return [
    `select pg_advisory_xact_lock(${MIGRATION_LOCK});`,
    s === '"public"' ? '' : `create schema if not exists ${s};`,
    tablesSql(s),
    refusalsSql(s),
    sealSql(s),
    holdSql(s),
    `insert into ${s}.tenure_schema (version) values (${POSTGRES_SCHEMA_VERSION}) on conflict do nothing;`,
  ].join('\n')
}

const TOKEN_COLUMNS = `
  incarnation bigint not null,
  generation bigint not null,
  session text not null`

function tablesSql(s: string): string {
  return `
create table if not exists ${s}.tenure_schema (version integer primary key);
create table if not exists ${s}.tenure_fence (
  group_name text not null,
  partition integer not null,
  v smallint not null default 1,${TOKEN_COLUMNS} check (session ~ '^[0-9a-f]{16}$'),
  sealed_at timestamptz not null default clock_timestamp(),
  primary key (group_name, partition)
);
create table if not exists ${s}.tenure_idempotency (
  group_name text not null,
  idempotency_key text not null,
  partition integer not null,${TOKEN_COLUMNS},
  applied_at timestamptz not null default clock_timestamp(),
  primary key (group_name, idempotency_key)
);
create index if not exists tenure_idempotency_applied_at
  on ${s}.tenure_idempotency (group_name, applied_at);
create table if not exists ${s}.tenure_checkpoint (
  group_name text not null,
  partition integer not null,
  name text not null default '',
  position bigint not null,${TOKEN_COLUMNS},
  updated_at timestamptz not null default clock_timestamp(),
  primary key (group_name, partition, name)
);
create table if not exists ${s}.tenure_outbox (
  id bigint generated always as identity primary key,
  group_name text not null,
  partition integer not null,${TOKEN_COLUMNS},
  topic text not null,
  payload jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  sent_at timestamptz
);
create index if not exists tenure_outbox_unsent
  on ${s}.tenure_outbox (group_name, id) where sent_at is null;`
}

function refusalsSql(s: string): string {
  const count = (reason: string) =>
    `select '${reason}'::text as reason, case when is_called then last_value else 0 end as count
  from ${s}.tenure_refused_${reason}`
  return `
create sequence if not exists ${s}.tenure_refused_stale;
create sequence if not exists ${s}.tenure_refused_unsealed;
create or replace view ${s}.tenure_refusals as
${count('stale')}
union all
${count('unsealed')};
create or replace function ${s}.tenure_refuse(
  p_reason text, p_token text, highest ${s}.tenure_fence
) returns void language plpgsql as $tenure$
declare
  seen text := 'nothing';
  detail text := 'null';
begin
  perform nextval(case p_reason
    when 'stale' then '${s}.tenure_refused_stale'::regclass
    else '${s}.tenure_refused_unsealed'::regclass end);
  if highest.group_name is not null then
    seen := highest.incarnation || '.' || highest.generation;
    detail := json_build_object('incarnation', highest.incarnation,
      'generation', highest.generation, 'session', highest.session)::text;
  end if;
  raise exception using
    errcode = case p_reason when 'stale' then 'TN001' else 'TN002' end,
    message = format('tenure: token %s is %s, the fence has sealed %s', p_token, p_reason, seen),
    detail = detail;
end $tenure$;`
}

const PARAMETERS = `
  p_group text, p_partition integer, p_incarnation bigint, p_generation bigint, p_session text
`

const TOKEN_TEXT = `p_group || '/' || p_partition || '@' || p_incarnation || '.' || p_generation`

function sealSql(s: string): string {
  return `
create or replace function ${s}.tenure_seal(${PARAMETERS}) returns void
language plpgsql as $tenure$
declare
  highest ${s}.tenure_fence%rowtype;
begin
  perform pg_advisory_xact_lock(hashtext('tenure:${s}:' || p_group), p_partition);
  insert into ${s}.tenure_fence (group_name, partition, incarnation, generation, session)
    values (p_group, p_partition, p_incarnation, p_generation, p_session)
    on conflict do nothing;
  if found then return; end if;
  select f.* into strict highest from ${s}.tenure_fence f
    where f.group_name = p_group and f.partition = p_partition for update;
  if (p_incarnation, p_generation) > (highest.incarnation, highest.generation) then
    update ${s}.tenure_fence f
      set incarnation = p_incarnation, generation = p_generation, session = p_session,
          sealed_at = clock_timestamp()
      where f.group_name = p_group and f.partition = p_partition;
  elsif (p_incarnation, p_generation) < (highest.incarnation, highest.generation)
      or p_session is distinct from highest.session then
    perform ${s}.tenure_refuse('stale', ${TOKEN_TEXT}, highest);
  end if;
end $tenure$;`
}

function holdSql(s: string): string {
  const where = `where f.group_name = p_group and f.partition = p_partition`
  const held = `select f.incarnation = p_incarnation and f.generation = p_generation
      and f.session = p_session into held from ${s}.tenure_fence f ${where}`
  return `
create or replace procedure ${s}.tenure_hold(${PARAMETERS})
language plpgsql as $tenure$
declare
  held boolean;
  highest ${s}.tenure_fence%rowtype;
begin
  if pg_advisory_xact_lock_shared(hashtext('tenure:${s}:' || p_group), p_partition) is null then
    -- An argument is null: nothing is locked, and no fence is of that name.
    held := false;
  elsif current_setting('transaction_isolation') = 'read committed' then
    ${held};
  else
    ${held} for share;
  end if;
  if held then return; end if;
  select f.* into highest from ${s}.tenure_fence f ${where};
  perform ${s}.tenure_refuse(
    case when highest.group_name is null
        or (p_incarnation, p_generation) > (highest.incarnation, highest.generation)
      then 'unsealed' else 'stale' end,
    ${TOKEN_TEXT}, highest);
end $tenure$;
create or replace function ${s}.tenure_guard(${PARAMETERS}) returns void
language plpgsql as $tenure$
begin
  call ${s}.tenure_hold(p_group, p_partition, p_incarnation, p_generation, p_session);
end $tenure$;`
}
