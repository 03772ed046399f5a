/**
 * Plan: the outbox example in worker processes on real servers, with a provider that knows idempotency
 * keys and one that does not. A sender is killed, and another paused beyond its lease, each with an e-mail
 * that was delivered and is not marked.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Pool } from 'pg'
import { connectStreams, createPublisher, ensureWorkStreams } from '../../src/composition/work.ts'
import { startServerProcess } from '../../src/dev/servers-process.ts'
import { eventually } from '../support/eventually.ts'
import { connectPostgres, startPostgres } from '../support/postgres.ts'
import { startEtcd, startNats, temporaryFolder } from '../support/servers.ts'
import { bundleExample } from './bundle-example.ts'
import { type Email, EmailProvider } from './email-provider.ts'

const PARTITIONS = 4
const ORDERS_EACH = 40
const SOON = { timeoutMs: 60_000 }

const START = `
import { startWorker } from 'tenure'
import { close, worker } from './deploy/examples/outbox-email/worker.js'
const started = await startWorker({ group: 'orders', ...worker })
await started.done.finally(close)`

async function startShop(t: TestContext, provider: EmailProvider) {
  await provider.listen(t)
  const [etcd, nats, postgres, folder, program] = await Promise.all([
    startEtcd(t),
    startNats(t, { jetStream: true }),
    startPostgres(t),
    temporaryFolder(t),
    bundleExample(t, 'outbox', START),
  ])
  const pool = connectPostgres(t, postgres)
  await pool.query('create table orders (id text primary key, customer text, total int)')
  const streams = await connectStreams({ nats: { servers: [nats.url] } })
  t.after(() => streams.close())
  await ensureWorkStreams(streams, { prefix: 'orders' })
  const publisher = await createPublisher({ streams, prefix: 'orders', partitions: PARTITIONS })
  let ordered = 0
  return {
    pool,
    ids: () => Array.from({ length: ordered }, (_, index) => `o-${index}`).sort(),
    async order() {
      const all = Array.from({ length: ORDERS_EACH }, () => {
        const id = `o-${ordered}`
        ordered += 1
        const order = JSON.stringify({ id, customer: `customer ${ordered % 7}`, total: ordered })
        return publisher.publish(`customer ${ordered % 7}`, order, { messageId: id })
      })
      await Promise.all(all)
    },
    async start(member: string) {
      const worker = await startServerProcess({
        ...{ name: member, program: process.execPath, args: [program], ports: [] },
        environment: {
          ...process.env,
          TENURE_MEMBER: member,
          TENURE_PARTITIONS: String(PARTITIONS),
          TENURE_LEASE_TTL: '2s',
          TENURE_MARGIN: '400ms',
          TENURE_FENCED: 'true',
          TENURE_ETCD_ENDPOINTS: etcd.endpoint,
          TENURE_NATS_SERVERS: nats.url,
          DATABASE_URL: postgres.url,
          EMAIL_URL: `${provider.url}/${member}`,
          // A paused sender keeps its row for so long.
          EMAIL_TIMEOUT_MS: '6000',
        },
        logFile: join(folder, `${member}.log`),
        isReady: async () => true,
      })
      t.after(() => worker.stop())
      return worker
    },
  }
}

function orderOf({ text }: Email): string {
  return /order (o-\d+)/.exec(text)?.[1] ?? text
}

async function unsent(pool: Pool): Promise<number> {
  const { rows } = await pool.query(
    'select count(*)::int as count from tenure_outbox where sent_at is null',
  )
  return rows[0]?.count ?? 0
}

for (const knowsKeys of [true, false]) {
  const outcome = knowsKeys
    ? 'each e-mail is delivered once'
    : 'none is lost, those in doubt double'
  test(`outbox, provider that knows ${knowsKeys ? 'keys' : 'no keys'}: senders killed and paused between sending and marking, ${outcome}`, async (t) => {
    const provider = new EmailProvider({ knowsKeys })
    const shop = await startShop(t, provider)
    const delivered = () => new Set(provider.inbox.map(orderOf)).size
    const inDoubt: string[] = []
    const oneInDoubt = async (waiting: readonly Email[]) => {
      await eventually(() => waiting.length > 0, { ...SOON, what: 'an e-mail in doubt' })
      inDoubt.push(...waiting.map(orderOf))
    }
    const first = await shop.start('w-1')
    await shop.order()
    await eventually(() => delivered() >= 5, { ...SOON, what: 'a start' })

    const ofKilled = provider.withholdAnswers('w-1')
    await shop.order()
    await oneInDoubt(ofKilled)
    await first.kill()
    const second = await shop.start('w-2')
    const isBySecond = () => provider.inbox.some(({ member }) => member === 'w-2')
    await eventually(isBySecond, { ...SOON, what: 'w-2 sends' })

    const third = await shop.start('w-3')
    const ofPaused = provider.withholdAnswers('w-2')
    await shop.order()
    await oneInDoubt(ofPaused)
    second.pause()
    const before = provider.again
    const isAgain = () => provider.again > before
    await eventually(isAgain, { ...SOON, what: 'the e-mail in doubt sent by the next owner' })
    provider.answer()
    second.resume()
    await shop.order()

    const ids = shop.ids()
    await eventually(() => delivered() === ids.length, { ...SOON, what: 'every e-mail' })
    await eventually(async () => (await unsent(shop.pool)) === 0, { ...SOON, what: 'all marked' })
    await Promise.all([second.stop(), third.stop()])

    const { rows } = await shop.pool.query<{ id: string }>('select id from orders')
    assert.deepEqual(rows.map(({ id }) => id).sort(), ids)
    const inbox = provider.inbox.map(orderOf).sort()
    const doubled = inbox.filter((id, index) => inbox[index - 1] === id)
    t.diagnostic(JSON.stringify({ orders: ids.length, again: provider.again, doubled }))
    assert.deepEqual([...new Set(inbox)], ids)
    assert.ok(provider.again >= 2, 'no e-mail was sent again: vacuous')
    if (knowsKeys) assert.deepEqual(doubled, [])
    else for (const id of inDoubt) assert.ok(doubled.includes(id), `${id} did not come again`)
  })
}
