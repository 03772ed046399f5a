/**
 * L4: how long after the last fault was healed until all partitions are owned and served, each has had an
 * effect begun since, and all maps are equal: those of both `serve` processes, that of an observer which
 * follows over NATS alone, and what etcd itself holds.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { decodePartitionRecord, recordOwner } from '../../src/core/partition-record.ts'
import { machineMs } from '../../src/dev/machine-time.ts'
import type { Store } from '../../src/ports/store.ts'
import type { Observer } from '../../src/runtime/observer-types.ts'
import { countProgressing } from './accept-store.ts'
import type { Cluster } from './cluster.ts'
import { KEYS } from './group-record.ts'
import { SETTINGS } from './layout.ts'

export type Settled = {
  readonly fromMs: number
  /** Null: not within the time that was waited. */
  readonly tookMs: number | null
  /** What was true last, in words. */
  readonly last: string
}

export type MapSources = { readonly store: Store; readonly observer: Observer }

const GIVE_UP_MS = 60_000
const POLL_MS = 100
const TIMEOUT_MS = 2000
const PAGE = 1000

export async function untilSettled(
  cluster: Cluster,
  { store, observer }: MapSources,
  interrupted: AbortSignal,
): Promise<Settled> {
  const fromMs = machineMs()
  const fromWallMs = Date.now()
  for (let last = ''; ; ) {
    const lacking = await whatLacks(cluster, { store, observer }, fromWallMs).catch(
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
    const tookMs = machineMs() - fromMs
    if (lacking === null) return { fromMs, tookMs, last: 'settled' }
    last = lacking
    if (tookMs > GIVE_UP_MS || interrupted.aborted) return { fromMs, tookMs: null, last }
    await delay(POLL_MS)
  }
}

async function whatLacks(
  cluster: Cluster,
  { store, observer }: MapSources,
  fromWallMs: number,
): Promise<string | null> {
  const { partitions } = SETTINGS
  const progressing = await countProgressing(cluster.pool, fromWallMs)
  if (progressing < partitions) return `${progressing} of ${partitions} partitions progress`
  for (const url of cluster.groupUrls) {
    const group = (await get(url)) as { owned: number; notServing: number; halted: number }
    const { owned, notServing, halted } = group
    if (owned < partitions || notServing > 0 || halted > 0) {
      return `${url}: ${owned} owned, ${notServing} not serving, ${halted} halted`
    }
  }
  const stands = await ofEtcd(store)
  for (const url of cluster.groupUrls) {
    const seen = await ofServe(url)
    const different = [...stands].filter(([partition, token]) => seen.get(partition) !== token)
    if (different.length > 0) return `${url}: ${different.length} partitions differ from etcd`
  }
  const different = [...stands].filter(
    ([partition, token]) => ofObserver(observer, partition) !== token,
  )
  if (different.length > 0) return `${different.length} partitions of the observer differ`
  return null
}

type Tokens = ReadonlyMap<number, string>

async function ofEtcd(store: Store): Promise<Tokens> {
  const prefix = `${KEYS.prefix}partitions/`
  const reply = await store.list({ prefix, limit: PAGE }, { timeoutMs: TIMEOUT_MS })
  if (!reply.ok) throw new Error(`etcd does not answer: ${reply.detail}`)
  return new Map(
    reply.value.entries.map(({ key, value }) => {
      const partition = Number(key.slice(prefix.length))
      const record = decodePartitionRecord(value, partition)
      return [partition, tokenText({ ...record, owner: recordOwner(record) })] as const
    }),
  )
}

async function ofServe(groupUrl: string): Promise<Tokens> {
  const page = (await get(`${groupUrl}/partitions?limit=${PAGE}`)) as {
    partitions: (Parameters<typeof tokenText>[0] & { partition: number })[]
  }
  return new Map(page.partitions.map((view) => [view.partition, tokenText(view)] as const))
}

function ofObserver(observer: Observer, partition: number): string {
  const { phase, incarnation, generation, owner } = observer.partition(partition)
  return tokenText({ phase, incarnation, generation, owner })
}

function tokenText(of: {
  readonly phase: string
  readonly incarnation: number
  readonly generation: number
  readonly owner: { readonly session: string } | null
}): string {
  return `${of.phase} ${of.incarnation}.${of.generation} ${of.owner?.session ?? 'nobody'}`
}

async function get(url: string): Promise<unknown> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
  if (!reply.ok) throw new Error(`${url} answers ${reply.status}`)
  return reply.json()
}
