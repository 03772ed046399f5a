/**
 * A member's way to etcd: sends the machines' commits and confirming reads, and feeds what came of them
 * back as events. A reply runs ahead of the watch; the mirror learns from it before the machine does, so
 * that nobody here acts on older news.
 */
import type { Commit } from '../core/commit.ts'
import type { OperationId, PartitionId } from '../core/ids.ts'
import type { OwnershipEvent } from '../core/ownership-state.ts'
import type { KeyValue } from '../core/transaction.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { CommitReply, Committer } from './committer.ts'
import type { Mirror, MirrorListener } from './mirror.ts'

/** Before a read that failed, or one that settles an unknown outcome, is sent. */
const RETRY_MS = 200

export class MemberCommits {
  private readonly committer: Committer
  private readonly mirror: Mirror
  private readonly clock: Clock
  private readonly teller: MirrorListener
  private readonly step: (partition: PartitionId, event: OwnershipEvent) => void
  private readonly isAsked: (partition: PartitionId, id: OperationId) => boolean
  private readonly learned: (partition: PartitionId, entry: KeyValue) => void
  private readonly timers = new Set<Timer>()
  private closed = false

  constructor(options: {
    readonly committer: Committer
    readonly mirror: Mirror
    readonly clock: Clock
    /** Not told of what the mirror learns here: it gets the event instead. */
    readonly teller: MirrorListener
    readonly step: (partition: PartitionId, event: OwnershipEvent) => void
    /** Whether the answer of this confirming read is still waited for. */
    readonly isAsked: (partition: PartitionId, id: OperationId) => boolean
    /** The mirror's record of the partition may have changed: it is this one, or a newer one. */
    readonly learned: (partition: PartitionId, entry: KeyValue) => void
  }) {
    this.committer = options.committer
    this.mirror = options.mirror
    this.clock = options.clock
    this.teller = options.teller
    this.step = options.step
    this.isAsked = options.isAsked
    this.learned = options.learned
  }

  send(commit: Commit): void {
    this.committer.commit(commit, (reply) => {
      if (!this.closed) this.replied(commit, reply)
    })
  }

  confirm(partition: PartitionId, id: OperationId): void {
    this.committer.confirm(partition, (reply) => {
      if (this.closed) return
      if (!reply.ok) {
        this.later(() => {
          if (this.isAsked(partition, id)) this.confirm(partition, id)
        })
        return
      }
      const learned = this.learn(reply.entry)
      this.step(partition, { type: 'confirmed', id, stored: reply.stored })
      if (learned !== null) this.learned(partition, learned)
    })
  }

  close(): void {
    this.closed = true
    for (const timer of this.timers) timer.cancel()
    this.timers.clear()
  }

  private replied({ partition, next }: Commit, reply: CommitReply): void {
    const { operation } = next
    let learned: KeyValue | null = null
    switch (reply.type) {
      case 'done':
        learned = this.learn(reply.entry)
        this.step(partition, { type: 'committed', operation })
        break
      case 'refused':
        learned = this.learn(reply.entry)
        this.step(partition, { type: 'refused', operation, stands: reply.stands })
        break
      case 'refused-all':
        this.step(partition, { type: 'refused-all', operation })
        break
      case 'unknown':
      case 'not-executed':
        this.later(() => this.step(partition, { type: 'unsettled', operation }))
        break
      default:
        reply satisfies never
    }
    // What the map did not take in, it will tell by itself; until then it is older than the seat.
    if (learned !== null) this.learned(partition, learned)
  }

  /** The entry, if the mirror took it in. */
  private learn(entry: KeyValue | null): KeyValue | null {
    return entry !== null && this.mirror.learn(entry, this.teller) ? entry : null
  }

  private later(callback: () => void): void {
    const timer = this.clock.schedule(RETRY_MS, () => {
      this.timers.delete(timer)
      callback()
    })
    this.timers.add(timer)
  }
}
