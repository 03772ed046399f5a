/**
 * A protected resource in memory, which decides by the rule of `core/fence.ts` and remembers what it
 * decided and when. Check and effect are one step. A write can be taken in two: begun by its owner while
 * it may, and landed later, as one does that was on its way when its process was paused.
 */
import { decideEffect, decideSeal, type Sealed } from '../core/fence.ts'
import type { PartitionId } from '../core/ids.ts'
import type { Token } from '../core/token.ts'
import type { EffectOutcome, Fence, SealOutcome } from '../fence/fence.ts'
import type { Clock } from '../ports/clock.ts'

/** One decision about a token. Times are virtual and monotonic. */
export type FenceEntry = {
  readonly resource: string
  readonly partition: PartitionId
  readonly token: Sealed
  /** What the writer said of its effect; empty for a seal. */
  readonly note: string
  /** When the owner began to write. */
  readonly beganAtMs: number
  readonly atMs: number
}

export type RefusedEntry = FenceEntry & {
  readonly reason: 'stale' | 'unsealed'
  readonly highest: Sealed | null
}

/** A write on its way. */
export interface LateWrite<T> {
  /** It arrives: checked and, if accepted, done, in one step. */
  land(): EffectOutcome<T>
}

export interface MemoryFence extends Fence<() => unknown, unknown> {
  readonly name: string
  seal(token: Token): Promise<SealOutcome>
  /** `note` stands in the logs. */
  guard<T>(token: Token, effect: () => T, note?: string): Promise<EffectOutcome<T>>
  /** A write that is sent now and lands when told to. */
  begin<T>(token: Token, effect: () => T, note?: string): LateWrite<T>
  /** The highest token sealed, or null. */
  highest(partition: PartitionId): Sealed | null
  readonly seals: readonly FenceEntry[]
  readonly accepted: readonly FenceEntry[]
  /** Refused seals and effects. */
  readonly refused: readonly RefusedEntry[]
}

/**
 * @example
 * const fence = createMemoryFence({ name: 'ledger', clock })
 * await fence.seal(p.token)
 * await fence.guard(p.token, () => balance.set('ann', 7))
 * const late = fence.begin(p.token, () => balance.set('ann', 8))
 * late.land() // { ok: false, reason: 'stale', … } once a newer owner has sealed
 */
export function createMemoryFence(options: {
  readonly name: string
  readonly clock: Clock
}): MemoryFence {
  return new ResourceInMemory(options.name, options.clock)
}

class ResourceInMemory implements MemoryFence {
  readonly name: string
  readonly seals: FenceEntry[] = []
  readonly accepted: FenceEntry[] = []
  readonly refused: RefusedEntry[] = []
  readonly #clock: Clock
  readonly #highest = new Map<PartitionId, Sealed>()

  constructor(name: string, clock: Clock) {
    this.name = name
    this.#clock = clock
  }

  highest(partition: PartitionId): Sealed | null {
    return this.#highest.get(partition) ?? null
  }

  async seal(token: Token): Promise<SealOutcome> {
    const entry = this.#entry(token, '', this.#clock.monotonicMs())
    const highest = this.highest(token.partition)
    const decision = decideSeal(highest, token)
    switch (decision) {
      case 'refuse': {
        // Only a token above this one refuses it, so there is one.
        const above = highest as Sealed
        this.refused.push({ ...entry, reason: 'stale', highest: above })
        return { ok: false, reason: 'stale', highest: above }
      }
      case 'raise':
        this.#highest.set(token.partition, entry.token)
        this.seals.push(entry)
        return { ok: true }
      case 'keep':
        return { ok: true }
      default:
        return decision satisfies never
    }
  }

  async guard<T>(token: Token, effect: () => T, note = ''): Promise<EffectOutcome<T>> {
    return this.#decide(token, effect, note, this.#clock.monotonicMs())
  }

  begin<T>(token: Token, effect: () => T, note = ''): LateWrite<T> {
    const beganAtMs = this.#clock.monotonicMs()
    return { land: () => this.#decide(token, effect, note, beganAtMs) }
  }

  #decide<T>(token: Token, effect: () => T, note: string, beganAtMs: number): EffectOutcome<T> {
    const highest = this.highest(token.partition)
    const decision = decideEffect(highest, token)
    const entry = this.#entry(token, note, beganAtMs)
    if (decision !== 'accept') {
      this.refused.push({ ...entry, reason: decision, highest })
      return { ok: false, reason: decision, highest }
    }
    const value = effect()
    this.accepted.push(entry)
    return { ok: true, value }
  }

  #entry(token: Token, note: string, beganAtMs: number): FenceEntry {
    const { partition, incarnation, generation, session } = token
    return {
      ...{ resource: this.name, partition, note, beganAtMs },
      token: { incarnation, generation, session },
      atMs: this.#clock.monotonicMs(),
    }
  }
}
