/**
 * What the contract suites need of the world that they run in, so that one text tests the in-memory
 * ports on virtual time and the real servers on real time: how to wait, and how to make a server fail.
 */
import type { SessionId } from '../../src/core/ids.ts'
import type { Broadcast } from '../../src/ports/broadcast.ts'
import type { Store } from '../../src/ports/store.ts'
import {
  createMemoryEtcd,
  createMemoryNats,
  createSeededRandom,
  createVirtualClock,
  type VirtualClock,
} from '../../src/testing/index.ts'
import { eventually as eventuallyReal } from '../support/eventually.ts'

/** How long any condition may take to come true, in the world's own time. */
export const LIMIT_MS = 15_000

export type Waiting = {
  /** Hands the promise's value on; in a virtual world time runs until it settles. */
  run<T>(promise: Promise<T>): Promise<T>
  /** Waits until the check gives something other than false, null or undefined, and returns that. */
  eventually<T>(
    what: string,
    check: () => T | Promise<T>,
  ): Promise<Exclude<T, false | null | undefined>>
  nowMs(): number
}

export type StoreWorld = Waiting & {
  /** A client of its own. */
  connect(): Store
  freshSession(): SessionId
  freshPrefix(): string
  compact(revision: number): Promise<void>
  stopServer(): Promise<void>
  startServer(): Promise<void>
}

export type BroadcastWorld = Waiting & {
  /** A client of its own, connected. */
  connect(): Promise<Broadcast>
  freshSubject(): string
  stopServer(): Promise<void>
  startServer(): Promise<void>
}

export type CleanUp = { after(callback: () => void | Promise<void>): void }

export async function memoryStoreWorld(): Promise<StoreWorld> {
  const clock = createVirtualClock()
  const etcd = createMemoryEtcd({ clock, random: createSeededRandom('store contract') })
  return {
    ...virtualWaiting(clock),
    ...freshNames('memory'),
    connect: () => etcd.connect('contract'),
    compact: async (revision) => etcd.compact(revision),
    stopServer: async () => etcd.setAvailability('down'),
    startServer: async () => etcd.setAvailability('up'),
  }
}

export async function memoryBroadcastWorld(): Promise<BroadcastWorld> {
  const clock = createVirtualClock()
  const nats = createMemoryNats({ clock, random: createSeededRandom('broadcast contract') })
  return {
    ...virtualWaiting(clock),
    freshSubject: freshNames('memory').freshSubject,
    connect: async () => nats.connect('contract'),
    stopServer: async () => nats.stop(),
    startServer: async () => nats.start(),
  }
}

export const realWaiting: Waiting = {
  run: (promise) => promise,
  eventually: (what, check) => eventuallyReal(check, { timeoutMs: LIMIT_MS, what }),
  nowMs: () => performance.now(),
}

/** Names that no other test of the same world uses; the seed keeps runs apart. */
export function freshNames(seed: string) {
  const random = createSeededRandom(seed)
  let next = 0
  const count = () => {
    next += 1
    return next
  }
  return {
    freshSession: () => random.sessionId(),
    freshPrefix: () => `/contract/${count()}/`,
    freshSubject: () => `contract.${count()}`,
  }
}

function virtualWaiting(clock: VirtualClock): Waiting {
  return {
    run: (promise) => clock.run(promise, { limitMs: LIMIT_MS }),
    eventually: async (what, check) => {
      const untilMs = clock.monotonicMs() + LIMIT_MS
      for (;;) {
        const value = await runCheck(clock, check)
        if (value !== false && value !== null && value !== undefined) {
          return value as Exclude<typeof value, false | null | undefined>
        }
        if (clock.monotonicMs() >= untilMs) throw new Error(`not within ${LIMIT_MS} ms: ${what}`)
        await clock.advance(10)
      }
    },
    nowMs: () => clock.monotonicMs(),
  }
}

/** A check may itself wait for time to run (by `run`), so only what it returns is awaited here. */
async function runCheck<T>(clock: VirtualClock, check: () => T | Promise<T>): Promise<T> {
  await clock.settle()
  return check()
}
