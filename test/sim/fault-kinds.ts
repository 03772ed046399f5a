/**
 * The faults that a simulated world can meet, by kind. What each does is in `process-faults.ts`,
 * `server-faults.ts` and `operator-faults.ts`; here is who is hit, and how long it lasts.
 *
 * `honest` false: an etcd that did this may drop live leases or forget what it acknowledged. An unfenced
 * resource is promised nothing after it (DESIGN, section 1).
 */
export type FaultTarget = 'worker' | 'serve' | 'observer' | 'etcd' | 'nats' | 'operator'

type KindFacts = {
  readonly target: FaultTarget
  /** Shortest and longest duration; 0, 0: a moment. */
  readonly forMs: readonly [number, number]
  readonly honest?: false
  /** How often it is drawn next to the others. Default 1. */
  readonly weight?: number
}

export const FAULT_KINDS = {
  kill: { target: 'worker', forMs: [300, 12_000], weight: 3 },
  'long-pause': { target: 'worker', forMs: [6_000, 20_000], weight: 3 },
  'short-pause': { target: 'worker', forMs: [100, 4_000] },
  stall: { target: 'worker', forMs: [500, 7_000] },
  'wall-jump': { target: 'worker', forMs: [1_000, 30_000] },
  leave: { target: 'worker', forMs: [300, 12_000], weight: 2 },
  flap: { target: 'worker', forMs: [4_000, 15_000] },
  'duplicate-name': { target: 'worker', forMs: [3_000, 25_000] },
  wedge: { target: 'worker', forMs: [2_000, 20_000] },
  'acquire-fails': { target: 'worker', forMs: [1_000, 6_000] },
  'etcd-cut': { target: 'worker', forMs: [1_000, 15_000], weight: 2 },
  'etcd-cut-requests': { target: 'worker', forMs: [1_000, 15_000] },
  'etcd-cut-replies': { target: 'worker', forMs: [1_000, 15_000], weight: 2 },
  'etcd-refused': { target: 'worker', forMs: [500, 12_000] },
  'nats-cut': { target: 'worker', forMs: [1_000, 15_000] },
  'nats-deaf': { target: 'worker', forMs: [1_000, 15_000] },
  'nats-mute': { target: 'worker', forMs: [1_000, 15_000] },
  'lost-replies': { target: 'worker', forMs: [2_000, 15_000], weight: 2 },
  'late-requests': { target: 'worker', forMs: [2_000, 15_000], weight: 2 },
  'doubled-requests': { target: 'worker', forMs: [2_000, 15_000] },
  'frozen-reads': { target: 'worker', forMs: [2_000, 15_000] },
  'silent-watch': { target: 'worker', forMs: [0, 0] },
  'serve-kill': { target: 'serve', forMs: [300, 12_000], weight: 2 },
  'serve-pause': { target: 'serve', forMs: [1_000, 20_000], weight: 2 },
  'serve-etcd-cut': { target: 'serve', forMs: [1_000, 15_000] },
  'serve-etcd-cut-replies': { target: 'serve', forMs: [1_000, 15_000] },
  'serve-nats-cut': { target: 'serve', forMs: [1_000, 15_000] },
  'serve-lost-replies': { target: 'serve', forMs: [2_000, 15_000] },
  'serve-late-requests': { target: 'serve', forMs: [2_000, 15_000] },
  'observer-pause': { target: 'observer', forMs: [1_000, 20_000] },
  'observer-cut': { target: 'observer', forMs: [1_000, 15_000] },
  'observer-slow': { target: 'observer', forMs: [1_000, 15_000] },
  'slow-disk': { target: 'etcd', forMs: [1_000, 10_000] },
  'leader-change': { target: 'etcd', forMs: [0, 0] },
  'quorum-loss': { target: 'etcd', forMs: [500, 15_000], weight: 2 },
  'etcd-stuck': { target: 'etcd', forMs: [300, 8_000] },
  'etcd-down': { target: 'etcd', forMs: [500, 12_000] },
  'etcd-restart': { target: 'etcd', forMs: [0, 0] },
  'lease-revoked': { target: 'etcd', forMs: [0, 0], honest: false, weight: 2 },
  'dead-lease-acks': { target: 'etcd', forMs: [5_000, 30_000] },
  'stale-reads': { target: 'etcd', forMs: [2_000, 15_000] },
  'watch-gap': { target: 'etcd', forMs: [500, 5_000] },
  compaction: { target: 'etcd', forMs: [0, 0] },
  'clock-jump': { target: 'etcd', forMs: [0, 0], honest: false },
  restore: { target: 'etcd', forMs: [2_000, 25_000], honest: false },
  wipe: { target: 'etcd', forMs: [0, 0], honest: false },
  'nats-outage': { target: 'nats', forMs: [500, 12_000] },
  'nats-loss': { target: 'nats', forMs: [2_000, 15_000] },
  move: { target: 'operator', forMs: [0, 0], weight: 5 },
  drain: { target: 'operator', forMs: [0, 0], weight: 2 },
  rebalance: { target: 'operator', forMs: [0, 0] },
  cancel: { target: 'operator', forMs: [0, 0], weight: 2 },
  freeze: { target: 'operator', forMs: [1_000, 15_000] },
  cordon: { target: 'operator', forMs: [1_000, 20_000] },
  disable: { target: 'operator', forMs: [1_000, 12_000], weight: 2 },
  'disable-group': { target: 'operator', forMs: [500, 6_000] },
  evict: { target: 'operator', forMs: [0, 0] },
  'raise-incarnation': { target: 'operator', forMs: [0, 0] },
} as const satisfies Readonly<Record<string, KindFacts>>

export type FaultKind = keyof typeof FAULT_KINDS

export const FAULT_KIND_NAMES = Object.keys(FAULT_KINDS) as readonly FaultKind[]

export function factsOf(kind: FaultKind): KindFacts {
  return FAULT_KINDS[kind]
}

/** Where a partition stands at the moment of a fault. */
export const PARTITION_PHASES = ['vacant', 'acquiring', 'serving', 'draining', 'halted'] as const
export type PartitionPhase = (typeof PARTITION_PHASES)[number]
