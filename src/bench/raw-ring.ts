/** Look-ups of owners in memory: an observer's, and a plain hash ring's of the same members. */
import HashRing from 'hashring'
import { createObserver } from '../composition/create-observer.ts'
import { partitionOf } from '../core/partition-key.ts'
import type { NatsOptions } from '../nats/nats-link.ts'
import type { Observer } from '../runtime/observer-types.ts'

export type LookupArgument = {
  readonly group: string
  readonly nats: NatsOptions
  readonly members: readonly string[]
}

export type LookupFigures = {
  /** Look-ups per second. */
  readonly observer: number
  readonly ring: number
  /** Hashes of keys per second. */
  readonly hash: number
}

/** The ring remembers 5000 keys. */
const CACHED_KEYS = 1000
const UNCACHED_KEYS = 20_000
const FOR_MS = 200
/** What the hash is taken modulo; any number will do. */
const PARTITIONS = 10_000

export class RawLookup {
  private readonly argument: LookupArgument
  private readonly ring: HashRing
  private observer: Observer | null = null
  private sum = 0

  constructor(argument: LookupArgument) {
    this.argument = argument
    this.ring = new HashRing([...argument.members])
  }

  async measure(cached: boolean): Promise<LookupFigures> {
    const { group, nats } = this.argument
    this.observer ??= await createObserver({ group, nats, telemetry: { record: () => {} } })
    const { observer, ring } = this
    await observer.ready
    const count = cached ? CACHED_KEYS : UNCACHED_KEYS
    const keys = Array.from({ length: count }, (_, index) => `customer-${index}`)
    const ask = (key: string) => {
      if (observer.owner(key) === null) throw new Error(`nobody owns ${key}`)
      this.sum += 1
    }
    const askRing = (key: string) => {
      this.sum += ring.get(key).length
    }
    const askHash = (key: string) => {
      this.sum += partitionOf(key, PARTITIONS)
    }
    // In turns, and each once for nothing.
    const rates = { observer: 0, ring: 0, hash: 0 }
    for (const counts of [false, true, true]) {
      const observed = ratePerSecond(keys, ask)
      const ringed = ratePerSecond(keys, askRing)
      const hashed = ratePerSecond(keys, askHash)
      if (!counts) continue
      rates.observer = Math.max(rates.observer, observed)
      rates.ring = Math.max(rates.ring, ringed)
      rates.hash = Math.max(rates.hash, hashed)
    }
    return rates
  }

  close(): void {
    this.observer?.close()
  }
}

function ratePerSecond(keys: readonly string[], ask: (key: string) => void): number {
  const beganMs = performance.now()
  let asked = 0
  while (performance.now() - beganMs < FOR_MS) {
    for (const key of keys) ask(key)
    asked += keys.length
  }
  return (asked / (performance.now() - beganMs)) * 1000
}
