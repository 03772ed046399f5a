/**
 * A member that takes leases from a table: free rows with `SELECT … FOR UPDATE SKIP LOCKED`, a batch at a
 * time, and one statement that renews all it holds at each third of the lease time. A row that the
 * renewal does not bring back is lost.
 */
import pg from 'pg'
import { openMember } from './member-side.ts'

const BATCH = 100
const POLL_MS = 250

const TAKE = `
  UPDATE lease SET owner = $1, generation = generation + 1,
    expires_at = clock_timestamp() + $2 * interval '1 millisecond'
  WHERE partition IN (
    SELECT partition FROM lease WHERE expires_at < clock_timestamp()
    LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
  RETURNING partition`
const RENEW = `
  UPDATE lease SET expires_at = clock_timestamp() + $2 * interval '1 millisecond'
  WHERE owner = $1 AND expires_at >= clock_timestamp()
  RETURNING partition`

const member = openMember()
const { store, leaseTtlMs, member: name } = member.task
const client = new pg.Client(store)
const held = new Set<number>()

async function partitionsOf(statement: string): Promise<readonly number[]> {
  const { rows } = await client.query<{ partition: number }>(statement, [name, leaseTtlMs])
  return rows.map(({ partition }) => partition)
}

async function take(): Promise<void> {
  const taken = await partitionsOf(TAKE)
  const isAgain = taken.filter((partition) => held.has(partition))
  // Its own lease had run out before anybody else took the row: the old claim ends here.
  member.lost(isAgain)
  for (const partition of taken) held.add(partition)
  member.held(taken)
  setTimeout(guarded(take), taken.length === BATCH ? 0 : POLL_MS)
}

async function renew(): Promise<void> {
  const before = [...held]
  const renewed = new Set(await partitionsOf(RENEW))
  const lost = before.filter((partition) => !renewed.has(partition))
  for (const partition of lost) held.delete(partition)
  member.lost(lost)
  setTimeout(guarded(renew), leaseTtlMs / 3)
}

function guarded(step: () => Promise<void>): () => void {
  return () => {
    step().catch((error) => {
      member.failed(error)
      setTimeout(guarded(step), POLL_MS)
    })
  }
}

await client.connect()
await member.begin()
guarded(take)()
setTimeout(guarded(renew), leaseTtlMs / 3)
await member.standby
// Whoever is free takes what runs out: nobody has to stand by for it.
member.standing()
