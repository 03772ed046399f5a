// Orders that are confirmed by e-mail, for `tenure worker ./worker.js`: the effect has a fence, the e-mail
// cannot have one. README.md beside this file says what is promised, and what no program can.
//
//   order ──▶ one fenced transaction: the order, the checkpoint, the e-mail's row in the outbox
//   outbox ──▶ the provider, with an idempotency key ──▶ marked as sent
//
// DATABASE_URL is PostgreSQL, with `create table orders (id text primary key, customer text, total int)`;
// EMAIL_URL is the provider's address; group, member and servers come from TENURE_*.
import pg from 'pg'
import { createPostgresFence, fencedTransaction, migrate, readCheckpoint, takeOutbox } from 'tenure/fence/postgres'
import { connectStreams, ensureWorkStreams, partitionedConsumer } from 'tenure/work'

const PREFIX = 'orders'
const IDLE_MS = 1000
const RETRY_MS = 1000
/** Beyond this a sender's row is free for another, so the provider has only half of it to answer. */
const SEND_TIMEOUT_MS = Number(process.env.EMAIL_TIMEOUT_MS ?? 30_000)

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
// Broken connections: whoever uses one hears of it.
pool.on('error', () => {})
await migrate(pool)
const fence = createPostgresFence(pool)
const streams = await connectStreams()
await ensureWorkStreams(streams, { prefix: PREFIX })

const consumer = partitionedConsumer({
  streams,
  prefix: PREFIX,
  seal: (token) => fence.seal(token),
  checkpoint: { load: (token, name) => readCheckpoint(pool, token, { name }) },
  // Applied once, whoever delivers it, and so is the row in the outbox. A refusal is returned as it is.
  handle: ({ message, token, checkpoint }) =>
    fencedTransaction(pool, token, { checkpoint }, async (client, outbox) => {
      const { id, customer, total } = JSON.parse(new TextDecoder().decode(message.data))
      await client.query('insert into orders values ($1, $2, $3)', [id, customer, total])
      await outbox.add({
        topic: 'email',
        payload: {
          // Of the order, not of the row: the same after a restored backup, and for every sender.
          idempotencyKey: `order-confirmed/${id}`,
          ...{ to: customer, text: `Thank you for order ${id}, ${total} in all.` },
        },
      })
    }),
})

export const worker = {
  ...consumer,
  // The owner of a partition also sends its e-mails, so they go in the order of its orders.
  run: async (p, cursor) => {
    const over = new AbortController()
    p.draining.addEventListener('abort', () => over.abort(), { once: true })
    if (p.draining.aborted) over.abort()
    const sending = sendEmails(p, over.signal)
    try {
      await consumer.run(p, cursor)
    } finally {
      over.abort()
      await sending
    }
  },
}

/** `tenure worker` calls it when the worker is done. */
export async function close() {
  await Promise.all([streams.close(), pool.end()])
}

async function sendEmails(p, over) {
  // One at a time: a sender that dies leaves one e-mail in doubt, not a hundred.
  const waiting = { group: p.token.group, partition: p.id, limit: 1, sendTimeoutMs: SEND_TIMEOUT_MS }
  while (!over.aborted) {
    try {
      // A closed gate keeps an old owner from beginning another. What it has begun, nothing takes back.
      const sent = await p.work(() => takeOutbox(pool, waiting, ([email]) => send(email.payload)))
      if (sent === 0) await pause(IDLE_MS, over)
    } catch (error) {
      if (over.aborted) return
      // Whether it was sent is not known, so it waits on and is sent again, under the same key.
      console.error(`outbox of partition ${p.id}: ${error.message}`)
      await pause(RETRY_MS, over)
    }
  }
}

async function send({ idempotencyKey, to, text }) {
  const reply = await fetch(process.env.EMAIL_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify({ to, text }),
    signal: AbortSignal.timeout(SEND_TIMEOUT_MS / 2),
  })
  if (!reply.ok) throw new Error(`the provider answered ${reply.status}`)
}

function pause(delayMs, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, delayMs)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end)
  })
}
