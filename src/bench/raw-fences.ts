/**
 * The same small transaction at each kind of resource, behind its fence, without one, and with the *least*
 * that any fence adds: one look at what is sealed, in the transaction, by the bare client. The last checks
 * nothing else, no argument, no refusal, no lock; it shows what the resource and its client take for the
 * step alone. All transactions of a measurement are of one partition, each at a row, key or entry of its own
 * lane, so that only the fence can bring them in each other's way.
 */
import { noop } from 'cockatiel'
import { Etcd3 } from 'etcd3'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { groupName, sessionId } from '../core/ids.ts'
import { sortableToken, type Token } from '../core/token.ts'
import { encodeTokenHeader } from '../core/token-text.ts'
import { createEtcdFence } from '../fence/etcd.ts'
import { fenceKey, valueEquals } from '../fence/etcd-operations.ts'
import { createHttpFence, createMemoryHighWater, fencePlugin } from '../fence/http.ts'
import { FENCE_HEADER, FENCE_VERSION, TOKEN_HEADER } from '../fence/http-problem.ts'
import { createPostgresFence, migrate } from '../fence/postgres.ts'
import { createRedisFence, redisKey } from '../fence/redis.ts'

export type ResourceName = 'PostgreSQL' | 'Redis' | 'etcd' | 'HTTP'

export type FenceArgument = {
  readonly resource: ResourceName
  /** Where it is; HTTP starts its own. */
  readonly url: string
}

/** One transaction in the lane. */
type Transact = (lane: number) => Promise<unknown>
export const FENCE_KINDS = ['fenced', 'unfenced', 'least'] as const
export type FenceKind = (typeof FENCE_KINDS)[number]
/** Milliseconds of each transaction. */
export type FenceTimes = Readonly<Record<FenceKind, readonly number[]>>
type Resource = Readonly<Record<FenceKind, Transact>> & { close(): Promise<void> }

const GROUP = 'bench'
const LANES = 16
const TURN_MS = 50
const TOKEN: Token = {
  ...{ group: groupName(GROUP), partition: 7, incarnation: 1_700_000_000, generation: 3 },
  session: sessionId('0123456789abcdef'),
}
const HEADER = encodeTokenHeader(TOKEN)
const SEALED = sortableToken(TOKEN)

export class RawFences {
  private resource: Resource | null = null

  async open({ resource, url }: FenceArgument): Promise<void> {
    this.resource = await OPEN[resource](url)
  }

  /**
   * So many lanes at work at once, each kind for so long; in short turns, since what one kind takes is a matter
   * of a few hundredths of what the machine takes more or less from one second to the next.
   */
  async measure(argument: { readonly lanes: number; readonly forMs: number }): Promise<FenceTimes> {
    const took: Record<FenceKind, number[]> = { fenced: [], unfenced: [], least: [] }
    const turns = Math.ceil(argument.forMs / TURN_MS)
    for (let turn = 0; turn < turns; turn += 1) {
      for (let place = 0; place < FENCE_KINDS.length; place += 1) {
        const kind = FENCE_KINDS[(turn + place) % FENCE_KINDS.length] as FenceKind
        await this.turn(kind, argument.lanes, took[kind])
      }
    }
    return took
  }

  private async turn(kind: FenceKind, lanes: number, took: number[]): Promise<void> {
    if (this.resource === null) throw new Error('open first')
    const transact = this.resource[kind]
    const untilMs = performance.now() + TURN_MS
    const work = async (lane: number): Promise<void> => {
      for (let nowMs = performance.now(); nowMs < untilMs; ) {
        await transact(lane)
        const endedMs = performance.now()
        took.push(endedMs - nowMs)
        nowMs = endedMs
      }
    }
    await Promise.all(Array.from({ length: lanes }, (_, lane) => work(lane)))
  }

  async close(): Promise<void> {
    await this.resource?.close()
    this.resource = null
  }
}

/** A refusal is not what is measured. */
function demandApplied(isApplied: boolean): void {
  if (!isApplied) throw new Error('the least check refused the token that is sealed')
}

const OPEN: Readonly<Record<ResourceName, (url: string) => Promise<Resource>>> = {
  PostgreSQL: openPostgres,
  Redis: openRedis,
  etcd: openEtcd,
  HTTP: openHttp,
}

async function openPostgres(url: string): Promise<Resource> {
  const pool = new Pool({ connectionString: url, max: LANES })
  // Its end comes before all connections are closed; the server's, right after, breaks those that are left.
  pool.on('error', () => {})
  await migrate(pool)
  await pool.query('create table if not exists bench (lane int primary key, n int not null)')
  for (let lane = 0; lane < LANES; lane += 1) {
    await pool.query('insert into bench values ($1, 0) on conflict do nothing', [lane])
  }
  const fence = createPostgresFence(pool, { group: GROUP })
  await fence.seal(TOKEN)
  const text = 'update bench set n = n + 1 where lane = $1'
  // Without the lock a seal could come between the look and the commit, and it would be no fence.
  const look =
    `select pg_advisory_xact_lock_shared(7463, ${TOKEN.partition}); ` +
    `select generation from tenure_fence where group_name = '${GROUP}' and ` +
    `partition = ${TOKEN.partition}`
  const transaction = async (lane: number, begin: string) => {
    const client = await pool.connect()
    try {
      await client.query(begin)
      await client.query(text, [lane])
      await client.query('commit')
    } finally {
      client.release()
    }
  }
  return {
    fenced: (lane) => fence.guard(TOKEN, (client) => client.query(text, [lane])),
    unfenced: (lane) => transaction(lane, 'begin'),
    least: (lane) => transaction(lane, `begin; ${look}`),
    close: () => pool.end(),
  }
}

const LEAST_SCRIPT = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
return redis.call('HINCRBY', KEYS[2], 'n', 1)`

async function openRedis(url: string): Promise<Resource> {
  const client = new Redis(url, { autoResendUnfulfilledCommands: false })
  const fence = createRedisFence(client, { group: GROUP })
  await fence.seal(TOKEN)
  const key = (lane: number) => redisKey(TOKEN, `bench-${lane}`)
  const sha = String(await client.script('LOAD', LEAST_SCRIPT))
  return {
    fenced: (lane) => fence.guard(TOKEN, { commands: [['hincrby', key(lane), 'n', 1]] }),
    unfenced: (lane) => client.multi().hincrby(key(lane), 'n', 1).exec(),
    least: async (lane) => {
      const keys = [redisKey(TOKEN, 'fence'), key(lane)]
      demandApplied((await client.evalsha(sha, 2, ...keys, SEALED)) !== null)
    },
    close: async () => {
      client.disconnect()
    },
  }
}

async function openEtcd(url: string): Promise<Resource> {
  const faultHandling = { global: noop, host: () => noop }
  const client = new Etcd3({ hosts: url, faultHandling })
  const fence = createEtcdFence(client, { group: GROUP })
  await fence.seal(TOKEN)
  const put = (lane: number) => ({
    request_put: { key: Buffer.from(`/bench-fence/${lane}`), value: Buffer.from('x'.repeat(100)) },
  })
  const isSealed = valueEquals(fenceKey(TOKEN.group, TOKEN.partition), Buffer.from(SEALED))
  return {
    fenced: (lane) => fence.guard(TOKEN, { success: [put(lane)] }),
    unfenced: (lane) => client.kv.txn({ compare: [], success: [put(lane)], failure: [] }),
    least: async (lane) => {
      const request = { compare: [isSealed], success: [put(lane)], failure: [] }
      demandApplied((await client.kv.txn(request)).succeeded)
    },
    close: async () => client.close(),
  }
}

async function openHttp(): Promise<Resource> {
  const app = Fastify({ logger: false })
  const counts = new Map<string, number>()
  const add = (lane: string) => {
    counts.set(lane, (counts.get(lane) ?? 0) + 1)
    return { ok: true }
  }
  app.post<{ Params: { lane: string } }>('/plain/:lane', async (request) =>
    add(request.params.lane),
  )
  app.post<{ Params: { lane: string } }>('/least/:lane', async (request, reply) => {
    reply.header(FENCE_HEADER, FENCE_VERSION)
    if (request.headers[TOKEN_HEADER] !== HEADER) reply.code(409)
    return add(request.params.lane)
  })
  // Routes that stood before the fence came have none.
  await app.register(fencePlugin, { group: GROUP, store: createMemoryHighWater() })
  app.post<{ Params: { lane: string } }>('/fenced/:lane', async (request) =>
    request.fence.commit(() => add(request.params.lane)),
  )
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  const fence = createHttpFence({ baseUrl, group: GROUP })
  await fence.seal(TOKEN)
  return {
    fenced: async (lane) => {
      const init = { method: 'POST' }
      const outcome = await fence.guard(TOKEN, { url: `${baseUrl}/fenced/${lane}`, init })
      if (!outcome.ok) throw new Error('refused')
      await outcome.value.arrayBuffer()
    },
    unfenced: async (lane) => {
      const reply = await fetch(`${baseUrl}/plain/${lane}`, { method: 'POST' })
      await reply.arrayBuffer()
    },
    least: async (lane) => {
      const headers = { [TOKEN_HEADER]: HEADER }
      const reply = await fetch(`${baseUrl}/least/${lane}`, { method: 'POST', headers })
      demandApplied(reply.ok && reply.headers.get(FENCE_HEADER) === FENCE_VERSION)
      await reply.arrayBuffer()
    },
    close: () => app.close(),
  }
}
