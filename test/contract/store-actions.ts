/** Short forms of the port's calls for the contract suite; each fails the test on a failed call. */
import assert from 'node:assert/strict'
import type { SessionId } from '../../src/core/ids.ts'
import type {
  Compare,
  KeyValue,
  Operation,
  Transaction,
  TransactionResult,
} from '../../src/core/transaction.ts'
import type {
  Store,
  StoreReply,
  StoreSuccess,
  Watch,
  WatchEnd,
  WatchEvent,
} from '../../src/ports/store.ts'
import type { StoreWorld } from './world.ts'

export const TIMEOUT = { timeoutMs: 5_000 }

export const put = (key: string, value: string, session?: SessionId): Operation => ({
  type: 'put',
  key,
  value,
  ...(session === undefined ? {} : { session }),
})
export const remove = (key: string): Operation => ({ type: 'delete', key })
export const get = (key: string): Operation => ({ type: 'get', key })
export const nested = (
  compare: readonly Compare[],
  success: readonly Operation[],
  failure: readonly Operation[] = [],
): Operation => ({ type: 'transaction', compare, success, failure })

export function actions(world: StoreWorld, store: Store) {
  const ask = (transaction: Transaction) => world.run(store.transact(transaction, TIMEOUT))
  const decide = async (
    compare: readonly Compare[],
    success: readonly Operation[],
    failure: readonly Operation[] = [],
  ): Promise<StoreSuccess<TransactionResult>> => expectOk(await ask({ compare, success, failure }))
  return {
    store,
    ask,
    decide,
    write: (...operations: Operation[]) => decide([], operations),
    holds: async (compare: Compare) => (await decide([compare], [])).value.succeeded,
    read: async (key: string): Promise<KeyValue | null> => {
      const [result] = (await decide([], [get(key)])).value.results
      assert.equal(result?.type, 'get')
      return result.type === 'get' ? result.found : null
    },
    revision: async () => (await decide([], [remove('/contract/never')])).revision,
    list: (prefix: string, limit = 1_000, rest: { after?: string; atRevision?: number } = {}) =>
      world.run(store.list({ prefix, limit, ...rest }, TIMEOUT)),
    openLease: async (ttlMs = 60_000): Promise<SessionId> => {
      const session = world.freshSession()
      expectOk(await world.run(store.openLease(session, ttlMs, TIMEOUT)))
      return session
    },
    closeLease: async (session: SessionId) =>
      expectOk(await world.run(store.closeLease(session, TIMEOUT))),
    renewLease: async (session: SessionId) =>
      expectOk(await world.run(store.renewLease(session, TIMEOUT))).value.ttlMs,
  }
}

export function expectOk<T>(reply: StoreReply<T>): StoreSuccess<T> {
  if (!reply.ok) assert.fail(`${reply.reason}: ${reply.detail}`)
  return reply
}

/** What a watch did, in order: one element per call of its handler. */
export type WatchLog = {
  readonly watch: Watch
  readonly batches: (readonly WatchEvent[])[]
  readonly ends: WatchEnd[]
  /** Progress calls and the newest event that had arrived before each. */
  readonly progress: { readonly revision: number; readonly newestEvent: number }[]
  /** `put key=value` and `delete key`, in the order of arrival. */
  lines(): string[]
}

export function watchInto(store: Store, prefix: string, fromRevision: number): WatchLog {
  const batches: (readonly WatchEvent[])[] = []
  const ends: WatchEnd[] = []
  const progress: { revision: number; newestEvent: number }[] = []
  const watch = store.watch(prefix, fromRevision, {
    events: (events) => batches.push(events.map(plainEvent)),
    progress: (revision) => progress.push({ revision, newestEvent: newestOf(batches) }),
    ended: (end) => ends.push(end),
  })
  return { watch, batches, ends, progress, lines: () => batches.flat().map(lineOf) }
}

export function revisionOf(event: WatchEvent): number {
  return event.type === 'put' ? event.entry.modRevision : event.modRevision
}

/** The events of the newest revision; fails when they did not all arrive in one call. */
export function newestChange(log: WatchLog): readonly WatchEvent[] {
  const newest = newestOf(log.batches)
  const parts = log.batches
    .map((batch) => batch.filter((event) => revisionOf(event) === newest))
    .filter((part) => part.length > 0)
  assert.equal(parts.length, 1)
  return parts[0] ?? []
}

/** An entry's fields alone: a store may give entries that hold more than those. */
function plainEvent(event: WatchEvent): WatchEvent {
  if (event.type === 'delete') return event
  const { key, value, createRevision, modRevision, session } = event.entry
  return { type: 'put', entry: { key, value, createRevision, modRevision, session } }
}

function newestOf(batches: readonly (readonly WatchEvent[])[]): number {
  const last = batches.at(-1)?.at(-1)
  return last === undefined ? 0 : revisionOf(last)
}

function lineOf(event: WatchEvent): string {
  return event.type === 'put'
    ? `put ${event.entry.key}=${event.entry.value}`
    : `delete ${event.key}`
}
