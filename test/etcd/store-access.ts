/** Short ways to a store in the tests of the etcd adapter. */
import assert from 'node:assert/strict'
import type { SessionId } from '../../src/core/ids.ts'
import type { Compare, Operation, TransactionResult } from '../../src/core/transaction.ts'
import { createEtcdStore, type EtcdStoreOptions } from '../../src/etcd/etcd-store.ts'
import { createSystemRandom } from '../../src/host/system-random.ts'
import type {
  Store,
  StoreReply,
  StoreSuccess,
  WatchEnd,
  WatchEvent,
} from '../../src/ports/store.ts'
import type { CleanUp } from '../support/servers.ts'

/** Ample, for a machine that runs much else. */
export const TIMEOUT = { timeoutMs: 10_000 }

export function openStore(
  cleanUp: CleanUp,
  endpoints: readonly string[],
  options: Omit<EtcdStoreOptions, 'endpoints'> = {},
): Store {
  const store = createEtcdStore({ endpoints, ...options })
  cleanUp.after(() => store.close())
  return store
}

export function newSession(): SessionId {
  return createSystemRandom().sessionId()
}

export function succeeded<T>(reply: StoreReply<T>): StoreSuccess<T> {
  assert.ok(reply.ok, reply.ok ? '' : `${reply.reason}: ${reply.detail}`)
  return reply
}

export async function run(
  store: Store,
  compare: readonly Compare[],
  success: readonly Operation[],
  failure: readonly Operation[] = [],
): Promise<TransactionResult> {
  return succeeded(await store.transact({ compare, success, failure }, TIMEOUT)).value
}

export async function put(
  store: Store,
  key: string,
  value: string,
  session?: SessionId,
): Promise<number> {
  const operation: Operation =
    session === undefined ? { type: 'put', key, value } : { type: 'put', key, value, session }
  const reply = await store.transact({ compare: [], success: [operation], failure: [] }, TIMEOUT)
  return succeeded(reply).revision
}

export async function read(store: Store, key: string): Promise<string | null> {
  const { results } = await run(store, [], [{ type: 'get', key }])
  const [result] = results
  assert.ok(result?.type === 'get')
  return result.found?.value ?? null
}

/** What a watch said so far. */
export type Record = {
  readonly calls: WatchEvent[][]
  readonly progress: number[]
  readonly ends: WatchEnd[]
  revisions(): readonly number[]
}

export function record(): Record & {
  readonly handler: {
    events(events: readonly WatchEvent[]): void
    progress(revision: number): void
    ended(end: WatchEnd): void
  }
} {
  const calls: WatchEvent[][] = []
  const progress: number[] = []
  const ends: WatchEnd[] = []
  return {
    calls,
    progress,
    ends,
    revisions: () =>
      calls
        .flat()
        .map((event) => (event.type === 'put' ? event.entry.modRevision : event.modRevision)),
    handler: {
      events: (events) => calls.push([...events]),
      progress: (revision) => progress.push(revision),
      ended: (end) => ends.push(end),
    },
  }
}
