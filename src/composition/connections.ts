/**
 * One set of connections per process and server list: several groups, workers and observers share one
 * etcd client for work, one for leases (both inside the store) and one NATS connection. The last to let
 * go closes them.
 */
import { createEtcdStore, type EtcdStoreOptions } from '../etcd/etcd-store.ts'
import { createSystemClock } from '../host/system-clock.ts'
import { createSystemRandom } from '../host/system-random.ts'
import { keepTickShape } from '../host/tick-shape.ts'
import { broadcastOver } from '../nats/nats-broadcast.ts'
import { type NatsOptions, openNatsLink } from '../nats/nats-link.ts'
import type { Broadcast } from '../ports/broadcast.ts'
import type { Store } from '../ports/store.ts'
import { createRingOrder } from '../ring/hashring-order.ts'

export type Shared<T> = { readonly value: T; release(): Promise<void> }

type Entry<T> = { readonly value: Promise<T>; users: number }

/** Clock, randomness and ring order of this process: none of them holds anything open. */
export const clock = createSystemClock()
export const random = createSystemRandom()
export const orderOf = createRingOrder()
// Here, where no caller's context is: it would be kept as well.
void keepTickShape()

const stores = new Map<string, Entry<Store>>()
const broadcasts = new Map<string, Entry<Broadcast>>()

export function shareStore(options: EtcdStoreOptions): Promise<Shared<Store>> {
  return share(stores, JSON.stringify(options), async () => createEtcdStore(options))
}

export function shareBroadcast(options: NatsOptions): Promise<Shared<Broadcast>> {
  return share(broadcasts, JSON.stringify(options), async () => {
    // Nobody waits for NATS: ownership does without it, and the link dials for ever.
    const link = openNatsLink(options)
    return { ...broadcastOver(link), close: () => link.close() }
  })
}

async function share<T extends { close(): Promise<void> }>(
  entries: Map<string, Entry<T>>,
  name: string,
  open: () => Promise<T>,
): Promise<Shared<T>> {
  const entry = entries.get(name) ?? { value: open(), users: 0 }
  entries.set(name, entry)
  entry.users += 1
  const letGo = (): boolean => {
    entry.users -= 1
    if (entry.users > 0) return false
    entries.delete(name)
    return true
  }
  try {
    const value = await entry.value
    let released = false
    return {
      value,
      release: async () => {
        if (released) return
        released = true
        if (letGo()) await value.close()
      },
    }
  } catch (error: unknown) {
    letGo()
    throw error
  }
}
