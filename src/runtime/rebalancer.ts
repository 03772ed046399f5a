/**
 * Drives the rebalancer: campaigns for the election, and while elected steps the machine of
 * `core/rebalancer.ts` over the mirror's state and performs its actions.
 *
 *   standby ──elected──▶ leading ──deposed | store rewound | closed──▶ standby
 *
 * All that changes within one turn of the event loop is one step. An answer runs ahead of the watch: the
 * mirror learns what it showed before the machine steps. Once deposed, nothing more is sent; what is on
 * its way compares the election and fails. Lives in `tenure serve`; workers never plan.
 */
import type { Commit } from '../core/commit.ts'
import { gatherMs } from '../core/gathering.ts'
import type { GroupChange } from '../core/group-state.ts'
import type { GroupName, PartitionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { PreferenceOrderFactory } from '../core/preference-order.ts'
import { startRebalancer, stepRebalancer } from '../core/rebalancer.ts'
import type {
  RebalancerAction,
  RebalancerEvent,
  RebalancerState,
  RebalancerStep,
  RebalancerView,
} from '../core/rebalancer-state.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { CommitReply, Committer } from './committer.ts'
import type { Mirror, MirrorListener } from './mirror.ts'
import { RebalancerElection } from './rebalancer-election.ts'
import { recordAction } from './rebalancer-telemetry.ts'
import { RebalancerWriter } from './rebalancer-writer.ts'
import type { SessionDriver } from './session-driver.ts'

export type RebalancerOptions = {
  readonly group: GroupName
  readonly keys: GroupKeys
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  readonly mirror: Mirror
  readonly committer: Committer
  readonly orderOf: PreferenceOrderFactory
  /** Who stands as `by` in moves that no operator asked for. Default `rebalancer`. */
  readonly by?: string
  /** Where this process is reached, for display in the election's record. */
  readonly address?: string
}

export interface Rebalancer {
  /** True while this process is the group's elected rebalancer. */
  isLeader(): boolean
  /** Calls back after each change, true when elected; returns how to stop. */
  onLeader(listener: (leading: boolean) => void): () => void
  /** Ends the session at once; a successor takes over within milliseconds. */
  close(): Promise<void>
}

/** Campaigns from now on until closed. */
export function createRebalancer(options: RebalancerOptions): Rebalancer {
  return new RebalancerDriver(options)
}

const GATHER_MOVE_MS = 0.005

type Leading = {
  readonly session: SessionDriver
  readonly ttlMs: number
  readonly writer: RebalancerWriter
  state: RebalancerState
}

class RebalancerDriver implements Rebalancer {
  private readonly options: RebalancerOptions
  private readonly election: RebalancerElection
  private readonly listeners = new Set<(leading: boolean) => void>()
  private readonly watcher: MirrorListener
  private readonly unsubscribe: () => void
  private leading: Leading | null = null
  private changed = new Set<PartitionId>()
  private answered = new Set<PartitionId>()
  private wrote: RebalancerEvent[] = []
  private turn: Timer | null = null
  private wake: Timer | null = null

  constructor(options: RebalancerOptions) {
    this.options = options
    const { keys, store, clock, random, mirror, address = '' } = options
    this.watcher = {
      changed: (change) => this.mirrorChanged(change),
      // What is known of moves belongs to a history that is gone: start over.
      rewound: () => this.resign(),
    }
    this.unsubscribe = mirror.subscribe(this.watcher)
    this.election = new RebalancerElection({
      ...{ keys, store, clock, random, mirror, address },
      listener: {
        elected: (session, ttlMs) => this.elected(session, ttlMs),
        deposed: (session, cause) => {
          const { group, telemetry } = options
          telemetry.record({ type: 'rebalancer-deposed', group, session, cause })
          this.stop()
        },
      },
    })
  }

  isLeader(): boolean {
    return this.leading?.session.isLive === true
  }

  onLeader(listener: (leading: boolean) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.unsubscribe()
    await this.election.close()
    this.stop()
  }

  private elected(session: SessionDriver, ttlMs: number): void {
    const { group, telemetry, keys, store, mirror } = this.options
    telemetry.record({ type: 'rebalancer-elected', group, session: session.session })
    const writer = new RebalancerWriter({
      ...{ group, keys, store, telemetry, mirror, teller: this.watcher },
      session: session.session,
      timeoutMs: ttlMs / 3,
      wrote: (slot, inView) => {
        if (this.leading?.session !== session) return
        this.wrote.push({ type: 'wrote', slot, inView })
        this.stepSoon()
      },
      deposed: () => this.resign(),
    })
    const step = startRebalancer(session.session, this.view(ttlMs), this.nowMs())
    this.leading = { session, ttlMs, writer, state: step.state }
    this.perform(step)
    for (const listener of this.listeners) listener(true)
  }

  /** Gives the election up; campaigning begins anew. */
  private resign(): void {
    void this.leading?.session.close('closed')
  }

  private stop(): void {
    this.turn?.cancel()
    this.wake?.cancel()
    this.turn = null
    this.wake = null
    this.changed.clear()
    this.answered.clear()
    this.wrote = []
    if (this.leading === null) return
    this.leading = null
    for (const listener of this.listeners) listener(false)
  }

  private mirrorChanged(change: GroupChange): void {
    if (this.leading === null) return
    for (const partition of change.partitions) this.changed.add(partition)
    this.stepSoon()
  }

  /** A step looks at each move under way: the more there are, the more news one step takes together. */
  private stepSoon(): void {
    const moves = this.leading?.state.moves.size ?? 0
    this.turn ??= this.options.clock.schedule(gatherMs(moves, GATHER_MOVE_MS), () => {
      this.turn = null
      const events: RebalancerEvent[] = [
        { type: 'changed', partitions: [...this.changed] },
        { type: 'answered', partitions: [...this.answered] },
        ...this.wrote,
      ]
      this.changed.clear()
      this.answered.clear()
      this.wrote = []
      this.step({ type: 'several', events })
    })
  }

  private step(event: RebalancerEvent): void {
    const { leading } = this
    if (leading === null) return
    if (!leading.session.isLive) {
      leading.session.look()
      return
    }
    const step = stepRebalancer(leading.state, event, this.view(leading.ttlMs), this.nowMs())
    leading.state = step.state
    this.perform(step)
  }

  private perform(step: RebalancerStep): void {
    const { clock } = this.options
    this.wake?.cancel()
    this.wake = null
    if (step.wakeAtMs !== null) {
      const delayMs = Math.max(0, step.wakeAtMs - clock.monotonicMs())
      this.wake = clock.schedule(delayMs, () => this.step({ type: 'wake' }))
    }
    for (const action of step.actions) this.act(action)
  }

  private act(action: RebalancerAction): void {
    switch (action.type) {
      case 'commit':
        this.send(action.commit)
        return
      case 'write':
        void this.leading?.writer.write(action.slot, action.write)
        return
      case 'close-lease':
        void this.leading?.writer.closeLease(action.slot, action.session)
        return
      case 'plan-made':
      case 'move-requested':
      case 'move-ended':
      case 'rebalance-changed':
      case 'eviction-closed':
      case 'alarm':
        recordAction(this.options.telemetry, this.options.group, action)
        return
      default:
        action satisfies never
    }
  }

  private send(commit: Commit): void {
    const session = this.leading?.session
    this.options.committer.commit(commit, (reply) => {
      if (session === undefined || this.leading?.session !== session) return
      this.learn(reply)
      this.answered.add(commit.partition)
      this.stepSoon()
    })
  }

  private learn(reply: CommitReply): void {
    switch (reply.type) {
      case 'done':
        this.options.mirror.learn(reply.entry, this.watcher)
        return
      case 'refused':
        if (reply.entry !== null) this.options.mirror.learn(reply.entry, this.watcher)
        return
      case 'refused-all':
        if (reply.failed.some(({ type }) => type === 'rebalancer')) this.resign()
        return
      case 'unknown':
      case 'not-executed':
        return
      default:
        reply satisfies never
    }
  }

  private view(ttlMs: number): RebalancerView {
    const { mirror, orderOf, random, clock, by = 'rebalancer' } = this.options
    const wallMs = clock.wallMs()
    const stamp = { operation: random.operationId(), atMs: wallMs }
    return { group: mirror.state, orderOf, ttlMs, wallMs, by, stamp }
  }

  private nowMs(): number {
    return this.options.clock.monotonicMs()
  }
}
