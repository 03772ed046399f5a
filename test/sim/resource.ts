/**
 * The protected resources of the simulated world, and the inputs that work is made of.
 *
 * An effect has two steps: the worker sends it, and some time later it arrives and is decided and applied
 * at once, whatever has become of the worker meanwhile. So late writes happen, and only the fence keeps
 * them out. The accept log is written here, by the resource. An unfenced resource takes everything.
 */
import { decideEffect, decideSeal, type Sealed } from '../../src/core/fence.ts'
import type { Token } from '../../src/core/token.ts'
import type { AcceptLine } from '../../src/evidence/accept-log.ts'
import type { Clock } from '../../src/ports/clock.ts'

export type SealOutcome = { readonly ok: true } | { readonly ok: false; readonly highest: Sealed }

export type ApplyOutcome =
  | { readonly outcome: 'applied' | 'already' }
  | { readonly outcome: 'refused'; readonly highest: Sealed | null }

export class Resource {
  readonly name: string
  private readonly fenced: boolean
  private readonly clock: Clock
  private readonly log: AcceptLine[]
  private readonly highest = new Map<number, Sealed>()
  private readonly applied = new Set<string>()

  constructor(name: string, fenced: boolean, clock: Clock, log: AcceptLine[]) {
    this.name = name
    this.fenced = fenced
    this.clock = clock
    this.log = log
  }

  seal(token: Token): SealOutcome {
    const highest = this.highest.get(token.partition) ?? null
    if (this.fenced && highest !== null && decideSeal(highest, token) === 'refuse') {
      return { ok: false, highest }
    }
    const { incarnation, generation, session } = token
    this.highest.set(token.partition, { incarnation, generation, session })
    const atMs = this.clock.monotonicMs()
    this.log.push({ type: 'sealed', token, atMs, resource: this.name })
    return { ok: true }
  }

  apply(token: Token, input: string): ApplyOutcome {
    const atMs = this.clock.monotonicMs()
    const line = { type: 'effect', token, input, beginMs: atMs, endMs: atMs } as const
    const highest = this.highest.get(token.partition) ?? null
    if (this.fenced && decideEffect(highest, token) !== 'accept') {
      this.log.push({ ...line, outcome: 'refused', resource: this.name })
      return { outcome: 'refused', highest }
    }
    const outcome = this.applied.has(input) ? 'already' : 'applied'
    this.applied.add(input)
    this.log.push({ ...line, outcome, resource: this.name })
    return { outcome }
  }

  isSealedBy(token: Token): boolean {
    const highest = this.highest.get(token.partition)
    return highest !== undefined && decideSeal(highest, token) === 'keep'
  }
}

/** The inputs of each partition, 1 and up without end, and how far they are acknowledged. */
export class Inputs {
  readonly acknowledged: string[] = []
  private readonly upTo: number[]

  constructor(partitions: number) {
    this.upTo = new Array<number>(partitions).fill(0)
  }

  /** The last one of the partition that was acknowledged; 0: none. */
  acknowledgedUpTo(partition: number): number {
    return this.upTo[partition] ?? 0
  }

  acknowledge(partition: number, number: number): void {
    if (number <= this.acknowledgedUpTo(partition)) return
    this.upTo[partition] = number
    this.acknowledged.push(inputName(partition, number))
  }
}

export function inputName(partition: number, number: number): string {
  return `${partition}-${number}`
}
