/**
 * The rebalancer's election: one session per attempt, on the key `rebalancer`.
 *
 *   waiting ──key absent──▶ claiming ──claimed──▶ elected ──session ended──▶ waiting
 *      ▲                       │ somebody else was first, or the store failed
 *      └───────────────────────┘
 *
 * While another holds the key, nothing is opened: the mirror says when it is gone. A jittered look every
 * third of the TTL, one transaction, is the safety net for a mirror that has not heard. Every attempt
 * has a lease id of its own, so nothing of an ended session can be mistaken for the new one's.
 */
import type { SessionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { SessionEnd } from '../core/session.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Store } from '../ports/store.ts'
import type { SessionEndCause } from '../ports/telemetry.ts'
import type { Mirror, MirrorListener } from './mirror.ts'
import { SessionDriver } from './session-driver.ts'

const RETRY_FIRST_MS = 100
const RETRY_MAX_MS = 2000

export type ElectionListener = {
  elected(session: SessionDriver, ttlMs: number): void
  /** The session that was elected has ended; it must not act any more. */
  deposed(session: SessionId, cause: SessionEndCause): void
}

export class RebalancerElection {
  private readonly keys: GroupKeys
  private readonly store: Store
  private readonly clock: Clock
  private readonly random: Random
  private readonly mirror: Mirror
  private readonly address: string
  private readonly listener: ElectionListener
  private readonly unsubscribe: () => void
  private attempt: SessionDriver | null = null
  private isElected = false
  private timer: Timer | null = null
  private retryMs = RETRY_FIRST_MS
  private closed = false

  constructor(options: {
    readonly keys: GroupKeys
    readonly store: Store
    readonly clock: Clock
    readonly random: Random
    readonly mirror: Mirror
    readonly address: string
    readonly listener: ElectionListener
  }) {
    this.keys = options.keys
    this.store = options.store
    this.clock = options.clock
    this.random = options.random
    this.mirror = options.mirror
    this.address = options.address
    this.listener = options.listener
    const watcher: MirrorListener = {
      changed: (change) => {
        // Settings too: while there are none, as after the store was wiped, nobody campaigns.
        const concerns = change.plans || change.settings
        if (concerns && this.mirror.state.rebalancer === null) this.campaign()
      },
      rewound: () => {},
    }
    this.unsubscribe = this.mirror.subscribe(watcher)
    this.mirror.ready.then(
      () => this.waitOrCampaign(),
      () => {},
    )
  }

  /** Ends the session at once, so that a successor takes over without waiting for the TTL. */
  async close(): Promise<void> {
    this.closed = true
    this.unsubscribe()
    this.timer?.cancel()
    await this.attempt?.close('closed')
  }

  private waitOrCampaign(): void {
    if (this.mirror.state.rebalancer === null) this.campaign()
    else this.lookLater()
  }

  private campaign(): void {
    const { config } = this.mirror.state
    if (this.closed || this.attempt !== null || config === null) return
    this.timer?.cancel()
    const session = this.random.sessionId()
    const value = { v: 1, session, ...(this.address === '' ? {} : { address: this.address }) }
    const attempt: SessionDriver = new SessionDriver({
      session,
      store: this.store,
      clock: this.clock,
      keys: { claim: this.keys.rebalancer, eviction: null, never: this.keys.never },
      value: JSON.stringify(value),
      settings: { ttlMs: config.leaseTtlMs, marginMs: config.marginMs },
      listener: {
        opened: (_, ttlMs) => {
          this.isElected = true
          this.retryMs = RETRY_FIRST_MS
          this.listener.elected(attempt, ttlMs)
        },
        proved: () => {},
        renewalFailed: () => {},
        ended: (end) => this.ended(session, end),
      },
    })
    this.attempt = attempt
  }

  private ended(session: SessionId, end: SessionEnd): void {
    const wasElected = this.isElected
    this.attempt = null
    this.isElected = false
    if (wasElected && end.cause !== 'open-failed' && end.cause !== 'name-in-use') {
      this.listener.deposed(session, end.cause)
    }
    if (this.closed) return
    if (end.cause === 'name-in-use') this.lookLater()
    else this.retryLater()
  }

  private lookLater(): void {
    const ttlMs = this.mirror.state.config?.leaseTtlMs ?? 6000
    this.later((ttlMs / 3) * (0.75 + this.random.fraction() / 2), () => void this.look())
  }

  private retryLater(): void {
    this.later(this.retryMs * (0.5 + this.random.fraction()), () => this.waitOrCampaign())
    this.retryMs = Math.min(RETRY_MAX_MS, this.retryMs * 2)
  }

  private later(delayMs: number, callback: () => void): void {
    this.timer?.cancel()
    this.timer = this.closed ? null : this.clock.schedule(delayMs, callback)
  }

  /** A writing transaction, so that the answer is not stale. */
  private async look(): Promise<void> {
    if (this.closed || this.attempt !== null) return
    const { rebalancer, never } = this.keys
    const touch = { type: 'delete', key: never } as const
    const reply = await this.store.transact(
      { compare: [{ type: 'absent', key: rebalancer }], success: [touch], failure: [touch] },
      { timeoutMs: RETRY_MAX_MS },
    )
    if (this.closed || this.attempt !== null) return
    if (reply.ok && reply.value.succeeded) this.campaign()
    else this.lookLater()
  }
}
