/**
 * The kinds of faults, and the order in which a seed deals them: like cards from a deck that holds each
 * kind so many times, so that a short run too meets every kind.
 */
import type { SeededRandom } from '../../src/testing/seeded-random.ts'
import { TTL_MS } from './layout.ts'

/** What a fault falls on. */
export type FaultClass = 'worker' | 'etcd' | 'nats' | 'postgres' | 'serve'

type KindRules = {
  readonly class: FaultClass
  /** Cards in the deck. */
  readonly cards: number
  /** How long it lasts, drawn evenly. */
  readonly fromMs: number
  readonly toMs: number
}

const BEYOND_TTL = { fromMs: TTL_MS + 800, toMs: TTL_MS + 4000 }

export const FAULT_KINDS = {
  'worker-kill': { class: 'worker', cards: 5, fromMs: 300, toMs: 3000 },
  'worker-pause': { class: 'worker', cards: 4, ...BEYOND_TTL },
  'worker-block': { class: 'worker', cards: 1, fromMs: 6000, toMs: 6000 },
  'worker-evict': { class: 'worker', cards: 1, fromMs: TTL_MS + 1500, toMs: TTL_MS + 2500 },
  'worker-cut-all': { class: 'worker', cards: 2, fromMs: 2000, toMs: 8000 },
  'worker-cut-etcd': { class: 'worker', cards: 2, fromMs: 2000, toMs: 9000 },
  'worker-cut-etcd-in': { class: 'worker', cards: 1, fromMs: 2000, toMs: 9000 },
  'worker-cut-etcd-out': { class: 'worker', cards: 1, fromMs: 2000, toMs: 9000 },
  'worker-cut-postgres': { class: 'worker', cards: 1, fromMs: 2000, toMs: 6000 },
  'worker-cut-nats': { class: 'worker', cards: 1, fromMs: 2000, toMs: 6000 },
  'worker-slow-etcd': { class: 'worker', cards: 1, fromMs: 3000, toMs: 8000 },
  'worker-half-open': { class: 'worker', cards: 1, fromMs: 3000, toMs: 8000 },
  'worker-black-hole': { class: 'worker', cards: 1, fromMs: 2000, toMs: 8000 },
  'worker-clock-jump': { class: 'worker', cards: 2, fromMs: 3000, toMs: 8000 },
  'etcd-leader-kill': { class: 'etcd', cards: 2, fromMs: 500, toMs: 5000 },
  'etcd-follower-kill': { class: 'etcd', cards: 1, fromMs: 500, toMs: 5000 },
  'etcd-leader-pause': { class: 'etcd', cards: 1, fromMs: 2000, toMs: 7000 },
  'etcd-follower-pause': { class: 'etcd', cards: 1, fromMs: 2000, toMs: 7000 },
  'etcd-cut-peers': { class: 'etcd', cards: 1, fromMs: 2000, toMs: 7000 },
  'etcd-cut-peers-in': { class: 'etcd', cards: 1, fromMs: 2000, toMs: 7000 },
  'etcd-cut-peers-out': { class: 'etcd', cards: 1, fromMs: 2000, toMs: 7000 },
  'etcd-cut-clients': { class: 'etcd', cards: 1, fromMs: 2000, toMs: 7000 },
  'etcd-quorum-loss': { class: 'etcd', cards: 1, fromMs: 2000, toMs: 7000 },
  'etcd-compact': { class: 'etcd', cards: 2, fromMs: 0, toMs: 0 },
  'etcd-defragment': { class: 'etcd', cards: 1, fromMs: 0, toMs: 0 },
  'nats-kill': { class: 'nats', cards: 1, fromMs: 500, toMs: 4000 },
  'nats-restart': { class: 'nats', cards: 1, fromMs: 0, toMs: 0 },
  'nats-pause': { class: 'nats', cards: 1, fromMs: 2000, toMs: 6000 },
  'nats-cut-all': { class: 'nats', cards: 1, fromMs: 2000, toMs: 6000 },
  'nats-cut-clients-out': { class: 'nats', cards: 1, fromMs: 2000, toMs: 6000 },
  'postgres-restart': { class: 'postgres', cards: 1, fromMs: 0, toMs: 0 },
  'postgres-crash': { class: 'postgres', cards: 1, fromMs: 300, toMs: 2000 },
  'serve-kill': { class: 'serve', cards: 1, fromMs: 300, toMs: 3000 },
  'serve-pause': { class: 'serve', cards: 1, ...BEYOND_TTL },
  'serve-cut-all': { class: 'serve', cards: 1, fromMs: 2000, toMs: 8000 },
  'serve-cut-etcd': { class: 'serve', cards: 1, fromMs: 2000, toMs: 8000 },
  'serve-cut-etcd-out': { class: 'serve', cards: 1, fromMs: 2000, toMs: 8000 },
} as const satisfies Readonly<Record<string, KindRules>>

export type FaultKind = keyof typeof FAULT_KINDS

export type DealtFault = {
  readonly kind: FaultKind
  readonly class: FaultClass
  readonly durationMs: number
  /** Chooses among the targets that are free. */
  readonly random: SeededRandom
}

/** One fault after the other, for ever. */
export function* dealFaults(
  random: SeededRandom,
  isPossible: (kind: FaultKind) => boolean,
): Generator<DealtFault, never, void> {
  const all = (Object.keys(FAULT_KINDS) as FaultKind[])
    .filter(isPossible)
    .flatMap((kind) => Array.from({ length: FAULT_KINDS[kind].cards }, () => kind))
  for (let number = 0; ; ) {
    for (const kind of shuffled(all, random)) {
      number += 1
      const { class: faultClass, fromMs, toMs } = FAULT_KINDS[kind]
      const durationMs = fromMs + random.integer(toMs - fromMs + 1)
      yield { kind, class: faultClass, durationMs, random: random.fork(`fault ${number}`) }
    }
  }
}

function shuffled<T>(values: readonly T[], random: SeededRandom): readonly T[] {
  const deck = [...values]
  for (let index = deck.length - 1; index > 0; index -= 1) {
    const other = random.integer(index + 1)
    const [a, b] = [deck[index], deck[other]]
    if (a !== undefined && b !== undefined) {
      deck[index] = b
      deck[other] = a
    }
  }
  return deck
}
