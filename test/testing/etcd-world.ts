/** A small in-memory etcd for the tests of its faults. */
import type { SessionId } from '../../src/core/ids.ts'
import type { Operation } from '../../src/core/transaction.ts'
import type { Store, StoreReply, WatchEnd } from '../../src/ports/store.ts'
import {
  createMemoryEtcd,
  createSeededRandom,
  createVirtualClock,
  type MemoryStore,
} from '../../src/testing/index.ts'

export const CALL = { timeoutMs: 1_000 }

export function createEtcdWorld(seed: number | string = 1) {
  const clock = createVirtualClock()
  const random = createSeededRandom(seed)
  const etcd = createMemoryEtcd({ clock, random: random.fork('etcd') })
  const store = etcd.connect('tested')
  const writer = etcd.connect('writer')
  return {
    clock,
    random,
    etcd,
    /** The client that meets the faults. */
    store,
    /** `key=value` of all that is really there. */
    truth: () => etcd.entries('').map((entry) => `${entry.key}=${entry.value}`),
    /** Writes by a client that meets none. */
    write: async (...lines: readonly string[]) => {
      for (const line of lines) await clock.run(transactPut(writer, line))
    },
    put: (line: string) => clock.run(transactPut(store, line)),
    read: (prefix = '') => clock.run(store.list({ prefix, limit: 100 }, CALL)),
    renew: async (session: SessionId) => {
      const reply = await clock.run(store.renewLease(session, CALL))
      return reply.ok ? reply.value.ttlMs : reply.reason
    },
    /** A lease of `ttlMs` with one key under it. */
    lease: async (ttlMs: number, key = 'leased') => {
      const session = random.sessionId()
      await clock.run(store.openLease(session, ttlMs, CALL))
      const operation: Operation = { type: 'put', key, value: '', session }
      await clock.run(store.transact({ compare: [], success: [operation], failure: [] }, CALL))
      return session
    },
  }
}

/** `key=value` puts, `-key` deletes. */
export function transactPut(store: Store, line: string) {
  const [key = '', value = ''] = line.split('=')
  const operation: Operation = line.startsWith('-')
    ? { type: 'delete', key: line.slice(1) }
    : { type: 'put', key, value }
  return store.transact({ compare: [], success: [operation], failure: [] }, CALL)
}

export function outcome(reply: StoreReply<unknown>): string {
  return reply.ok ? 'ok' : reply.reason
}

/** What a watch hears, one line per event, and how it ended. */
export function hear(store: MemoryStore, fromRevision: number, prefix = '') {
  const heard: string[] = []
  const ends: WatchEnd['reason'][] = []
  const watch = store.watch(prefix, fromRevision, {
    events: (events) => {
      for (const event of events) {
        heard.push(
          event.type === 'put' ? `${event.entry.key}=${event.entry.value}` : `-${event.key}`,
        )
      }
    },
    progress: () => {},
    ended: (end) => ends.push(end.reason),
  })
  return { heard, ends, watch }
}
