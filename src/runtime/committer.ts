/**
 * Sends commits and confirming reads to etcd in batches: what piles up within one turn of the event
 * loop, or while `BATCHES_IN_FLIGHT_MAX` requests are under way, shares a transaction. One lost race
 * fails nobody else, and one reply settles up to 120 partitions.
 *
 * Commits that fill no half of a batch wait for the answer to what is under way, and for more to join them, but
 * no longer than `COMPANY_MS`: every transaction is a message to every member, whatever it holds. What comes
 * while nothing is under way goes at once.
 *
 * A request that gets no answer in time shows an etcd that has more than it can do: each halves what is
 * sent at once, down to one request, and every answer in good time adds one again. Else all members of a
 * group would go on to time out together, and read back what was about to succeed.
 *
 * Nothing is retried here. An unknown outcome is told as such; what to do about it is the caller's
 * state machine's business (`core/ownership.ts`).
 */
import type { Commit, Requirement, StoredRecord } from '../core/commit.ts'
import type { CommitBatch } from '../core/commit-batch.ts'
import { COMMITS_PER_BATCH_MAX, commitBatch, commitOutcomes } from '../core/commit-batch.ts'
import type { PartitionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import { decodePartitionRecord } from '../core/partition-record.ts'
import type { KeyValue, Operation, Transaction, TransactionResult } from '../core/transaction.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Store, StoreReply } from '../ports/store.ts'

export const BATCHES_IN_FLIGHT_MAX = 6
/** Matters only where etcd takes longer than this to answer: then fewer and fuller transactions are what helps. */
const COMPANY_MS = 100
/** So many wait for nobody. */
export const COMPANY_COMMITS = COMMITS_PER_BATCH_MAX / 2
/** An answer within this share of the timeout came in good time. */
const GOOD_TIME_SHARE = 1 / 3
/** A connection that breaks is noticed sooner, and says nothing of how busy etcd is. */
const LATE_SHARE = 1 / 2

export type CommitReply =
  /** `entry`: the record as it now stands in etcd. */
  | { readonly type: 'done'; readonly revision: number; readonly entry: KeyValue }
  | {
      readonly type: 'refused'
      readonly stands: StoredRecord | null
      readonly entry: KeyValue | null
      readonly revision: number
    }
  | { readonly type: 'refused-all'; readonly failed: readonly Requirement[] }
  | { readonly type: 'unknown'; readonly detail: string }
  | { readonly type: 'not-executed'; readonly detail: string }

export type ConfirmReply =
  | {
      readonly ok: true
      readonly stored: StoredRecord | null
      readonly entry: KeyValue | null
      readonly revision: number
    }
  | { readonly ok: false; readonly detail: string }

type QueuedCommit = { readonly commit: Commit; readonly done: (reply: CommitReply) => void }
type QueuedConfirm = {
  readonly partition: PartitionId
  readonly done: (reply: ConfirmReply) => void
}

export class Committer {
  private readonly store: Store
  private readonly keys: GroupKeys
  private readonly clock: Clock
  private readonly timeoutMs: number
  private commits: QueuedCommit[] = []
  private confirms: QueuedConfirm[] = []
  private inFlight = 0
  private inFlightMax = BATCHES_IN_FLIGHT_MAX
  private scheduled = false
  /** Runs while commits wait for company. */
  private company: Timer | null = null

  constructor(options: {
    readonly store: Store
    readonly keys: GroupKeys
    readonly clock: Clock
    /** How long one request may take before its outcome counts as unknown. */
    readonly timeoutMs: number
  }) {
    this.store = options.store
    this.keys = options.keys
    this.clock = options.clock
    this.timeoutMs = options.timeoutMs
  }

  /** `done` is called once, never synchronously. */
  commit(commit: Commit, done: (reply: CommitReply) => void): void {
    this.commits.push({ commit, done })
    this.schedule()
  }

  /** Reads the record in a writing transaction, so that the answer cannot be stale. */
  confirm(partition: PartitionId, done: (reply: ConfirmReply) => void): void {
    this.confirms.push({ partition, done })
    this.schedule()
  }

  /** Commits and reads not yet answered. */
  get pending(): number {
    return this.commits.length + this.confirms.length + this.inFlight
  }

  private schedule(): void {
    if (this.scheduled || this.inFlight >= this.inFlightMax) return
    this.scheduled = true
    this.clock.schedule(0, () => {
      this.scheduled = false
      this.flush()
    })
  }

  private flush(mayWait = true): void {
    while (this.inFlight < this.inFlightMax) {
      if (this.confirms.length > 0) {
        const batch = this.confirms.splice(0, COMMITS_PER_BATCH_MAX)
        void this.whileInFlight(() => this.sendConfirms(batch))
      } else if (this.commits.length === 0) {
        return
      } else if (mayWait && this.inFlight > 0 && this.commits.length < COMPANY_COMMITS) {
        this.waitForCompany()
        return
      } else {
        const batch = this.takeCommits()
        void this.whileInFlight(() => this.sendCommits(batch))
      }
    }
  }

  private waitForCompany(): void {
    this.company ??= this.clock.schedule(COMPANY_MS, () => {
      this.company = null
      this.flush(false)
    })
  }

  /** At most one commit per partition in a batch: etcd refuses a key that is put twice. */
  private takeCommits(): readonly QueuedCommit[] {
    this.company?.cancel()
    this.company = null
    const taken: QueuedCommit[] = []
    const left: QueuedCommit[] = []
    const partitions = new Set<PartitionId>()
    let index = 0
    for (; index < this.commits.length && taken.length < COMMITS_PER_BATCH_MAX; index++) {
      const queued = this.commits[index] as QueuedCommit
      if (partitions.has(queued.commit.partition)) left.push(queued)
      else {
        partitions.add(queued.commit.partition)
        taken.push(queued)
      }
    }
    this.commits = left.concat(this.commits.slice(index))
    return taken
  }

  private async whileInFlight(send: () => Promise<void>): Promise<void> {
    this.inFlight++
    try {
      await send()
    } finally {
      this.inFlight--
      this.flush()
    }
  }

  private async sendCommits(queued: readonly QueuedCommit[]): Promise<void> {
    const batch: CommitBatch = commitBatch(
      this.keys,
      queued.map(({ commit }) => commit),
    )
    const reply = await this.transact(batch.transaction)
    if (!reply.ok) {
      const type = reply.reason === 'unknown-outcome' ? 'unknown' : 'not-executed'
      for (const { done } of queued) done({ type, detail: reply.detail })
      return
    }
    const { revision } = reply
    const outcomes = commitOutcomes(this.keys, batch, reply.value)
    for (const [index, outcome] of outcomes.entries()) {
      const { commit, done } = queued[index] as QueuedCommit
      switch (outcome.type) {
        case 'done':
          done({ type: 'done', revision, entry: this.written(commit, revision) })
          break
        case 'refused':
          done({
            type: 'refused',
            stands: decode(outcome.stands, commit.partition),
            entry: outcome.stands,
            revision,
          })
          break
        case 'refused-all':
          done(outcome)
          break
        default:
          outcome satisfies never
      }
    }
  }

  private async sendConfirms(queued: readonly QueuedConfirm[]): Promise<void> {
    const reads: Operation[] = queued.map(({ partition }) => ({
      type: 'get',
      key: this.keys.partition(partition),
    }))
    const reply = await this.transact({
      compare: [],
      success: [{ type: 'delete', key: this.keys.never }, ...reads],
      failure: [],
    })
    for (const [index, { partition, done }] of queued.entries()) {
      if (!reply.ok) {
        done({ ok: false, detail: reply.detail })
        continue
      }
      const got = reply.value.results[index + 1]
      const entry = got?.type === 'get' ? got.found : null
      done({ ok: true, stored: decode(entry, partition), entry, revision: reply.revision })
    }
  }

  private async transact(transaction: Transaction): Promise<StoreReply<TransactionResult>> {
    const { store, clock, timeoutMs } = this
    const sentAtMs = clock.monotonicMs()
    const reply = await store.transact(transaction, { timeoutMs })
    const tookMs = clock.monotonicMs() - sentAtMs
    if (!reply.ok && reply.reason === 'unknown-outcome' && tookMs >= timeoutMs * LATE_SHARE) {
      this.inFlightMax = Math.max(1, this.inFlightMax >> 1)
    } else if (reply.ok && tookMs <= timeoutMs * GOOD_TIME_SHARE) {
      this.inFlightMax = Math.min(BATCHES_IN_FLIGHT_MAX, this.inFlightMax + 1)
    }
    return reply
  }

  private written(commit: Commit, revision: number): KeyValue {
    const key = this.keys.partition(commit.partition)
    return { key, value: commit.value, createRevision: 0, modRevision: revision, session: null }
  }
}

function decode(found: KeyValue | null, partition: PartitionId): StoredRecord | null {
  if (found === null) return null
  return { record: decodePartitionRecord(found.value, partition), raw: found.value }
}
