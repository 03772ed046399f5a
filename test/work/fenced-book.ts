/** A fenced resource in memory: effects, their idempotency keys and a checkpoint commit in one step. */
import { decideEffect, decideSeal, type Sealed } from '../../src/core/fence.ts'
import { createTenureError } from '../../src/core/tenure-error.ts'
import type { Token } from '../../src/core/token.ts'

export type Entry = {
  readonly key: string
  readonly sequence: number
  readonly token: Token
}

export class FencedBook {
  readonly entries: Entry[] = []
  /** Idempotency keys that came again. */
  readonly replays: string[] = []
  refusals = 0
  private readonly highest = new Map<number, Sealed>()
  private readonly done = new Set<string>()
  private readonly checkpoints = new Map<number, number>()

  seal(token: Token): { ok: boolean; highest: Sealed | null } {
    const highest = this.highest.get(token.partition) ?? null
    if (decideSeal(highest, token) === 'refuse') return { ok: false, highest }
    const { incarnation, generation, session } = token
    this.highest.set(token.partition, { incarnation, generation, session })
    return { ok: true, highest }
  }

  checkpoint(partition: number): number | null {
    return this.checkpoints.get(partition) ?? null
  }

  /** @throws TenureError `fence-refused` */
  commit(
    token: Token,
    effect: {
      readonly key: string
      readonly sequence: number
      readonly idempotencyKey: string
      readonly checkpoint: number
    },
  ): void {
    this.save(token, effect.checkpoint)
    if (this.done.has(effect.idempotencyKey)) {
      this.replays.push(effect.idempotencyKey)
      return
    }
    this.done.add(effect.idempotencyKey)
    this.entries.push({ key: effect.key, sequence: effect.sequence, token })
  }

  /** @throws TenureError `fence-refused` */
  save(token: Token, checkpoint: number): void {
    const { partition } = token
    if (decideEffect(this.highest.get(partition) ?? null, token) !== 'accept') {
      this.refusals += 1
      throw createTenureError('fence-refused', `token ${token.generation} is stale`)
    }
    const before = this.checkpoints.get(partition) ?? 0
    this.checkpoints.set(partition, Math.max(before, checkpoint))
  }
}

/** Sequences of the entries by key, in the order in which they were committed. */
export function sequencesByKey(entries: readonly Entry[]): Map<string, number[]> {
  const byKey = new Map<string, number[]>()
  for (const { key, sequence } of entries) {
    byKey.set(key, [...(byKey.get(key) ?? []), sequence])
  }
  return byKey
}
