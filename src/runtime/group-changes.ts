/**
 * One operator's change of one key: read it in a writing transaction, decide on what stands there, and
 * compare-and-set.
 *
 *   read ──▶ decide ──answer──▶ done
 *     ▲         └──write──▶ compare-and-set ──succeeded──▶ done
 *     └── refused (it changed) · unknown outcome · not executed ──┘    until the deadline
 *
 * It is answered only once etcd acknowledged. An unknown outcome is settled by the next read: our own
 * value standing there is success; the old one proves nothing, so only the same compare is tried again,
 * and of two attempts at most one can succeed.
 */
import type { SessionId } from '../core/ids.ts'
import type { Compare, KeyValue, Operation } from '../core/transaction.ts'
import type { Clock } from '../ports/clock.ts'
import type { Change, Refusal } from '../ports/group-access.ts'
import type { Store, StoreFailure } from '../ports/store.ts'
import type { Mirror } from './mirror.ts'

export type Decision<T> =
  | { readonly type: 'answer'; readonly change: Change<T> }
  | {
      readonly type: 'put'
      readonly value: string
      readonly session?: SessionId
      readonly result: T
    }
  | { readonly type: 'delete'; readonly result: T }

export type KeyChange<T> = {
  readonly key: string
  /** What else must hold when it is written. Where it does not, `decide` is asked again. */
  readonly guards?: readonly Compare[]
  /** Other keys to read along, in the sequence in which `decide` gets them. */
  readonly alongside?: readonly string[]
  decide(stands: KeyValue | null, alongside: readonly (KeyValue | null)[]): Decision<T>
}

const DEADLINE_MS = 5000
const CALL_TIMEOUT_MS = 2000
const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 500
const RETRY_AFTER_MS = 2000
/** How often others may get in between before it counts as a conflict. */
const RACES_MAX = 8

export class GroupChanges {
  private readonly store: Store
  private readonly clock: Clock
  private readonly mirror: Mirror
  private readonly never: string

  constructor(options: {
    readonly store: Store
    readonly clock: Clock
    readonly mirror: Mirror
    readonly never: string
  }) {
    this.store = options.store
    this.clock = options.clock
    this.mirror = options.mirror
    this.never = options.never
  }

  async change<T>(change: KeyChange<T>): Promise<Change<T>> {
    const endMs = this.clock.monotonicMs() + DEADLINE_MS
    /** Values sent with an unknown outcome, and what each would have answered. */
    const sent = new Map<string | null, T>()
    let races = 0
    let retryMs = RETRY_FIRST_MS
    for (;;) {
      const read = await this.read(change, endMs)
      if (!('stands' in read)) return read
      const { stands, alongside } = read
      const ours = stands?.value ?? null
      if (sent.has(ours)) return { ok: true, value: sent.get(ours) as T }
      const decision = change.decide(stands, alongside)
      if (decision.type === 'answer') return decision.change
      const reply = await this.store.transact(
        {
          compare: [unchanged(change.key, stands), ...(change.guards ?? [])],
          success: [operation(change.key, decision)],
          failure: [{ type: 'delete', key: this.never }],
        },
        { timeoutMs: this.timeoutMs(endMs) },
      )
      if (reply.ok && reply.value.succeeded) {
        if (decision.type === 'put') this.learn(change.key, decision, reply.revision)
        return { ok: true, value: decision.result }
      }
      if (reply.ok) {
        races += 1
        if (races >= RACES_MAX) return conflict(change.key)
        continue
      }
      if (reply.reason === 'refused' || this.isOver(endMs)) return unreachable(reply)
      if (reply.reason === 'unknown-outcome') {
        sent.set(decision.type === 'put' ? decision.value : null, decision.result)
      }
      await this.pause(retryMs)
      retryMs = Math.min(RETRY_MAX_MS, retryMs * 2)
    }
  }

  private async read<T>(
    change: KeyChange<T>,
    endMs: number,
  ): Promise<
    Refusal | { readonly stands: KeyValue | null; readonly alongside: readonly (KeyValue | null)[] }
  > {
    const keys = [change.key, ...(change.alongside ?? [])]
    let retryMs = RETRY_FIRST_MS
    for (;;) {
      const reply = await this.store.transact(
        {
          compare: [],
          success: [
            { type: 'delete', key: this.never },
            ...keys.map((key): Operation => ({ type: 'get', key })),
          ],
          failure: [],
        },
        { timeoutMs: this.timeoutMs(endMs) },
      )
      if (reply.ok) {
        const found = reply.value.results
          .slice(1)
          .map((result) => (result.type === 'get' ? result.found : null))
        return { stands: found[0] ?? null, alongside: found.slice(1) }
      }
      if (reply.reason === 'refused' || this.isOver(endMs)) return unreachable(reply)
      await this.pause(retryMs)
      retryMs = Math.min(RETRY_MAX_MS, retryMs * 2)
    }
  }

  /** So that who asks next sees what was answered. Deletions come by the watch, an incarnation by a list. */
  private learn(
    key: string,
    decision: { readonly value: string; readonly session?: SessionId },
    revision: number,
  ): void {
    const nobody = { changed: () => {}, rewound: () => {} }
    const { value } = decision
    const session = decision.session ?? null
    this.mirror.learn({ key, value, createRevision: 0, modRevision: revision, session }, nobody)
  }

  private timeoutMs(endMs: number): number {
    return Math.max(1, Math.min(CALL_TIMEOUT_MS, endMs - this.clock.monotonicMs()))
  }

  private isOver(endMs: number): boolean {
    return this.clock.monotonicMs() >= endMs
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.schedule(delayMs, resolve)
    })
  }
}

function unchanged(key: string, stands: KeyValue | null): Compare {
  return stands === null
    ? { type: 'absent', key }
    : { type: 'value-equals', key, value: stands.value }
}

function operation<T>(key: string, decision: Decision<T>): Operation {
  if (decision.type !== 'put') return { type: 'delete', key }
  const { value, session } = decision
  return { type: 'put', key, value, ...(session === undefined ? {} : { session }) }
}

function conflict(key: string): Refusal {
  const name = key.slice(key.lastIndexOf('/') + 1)
  return { ok: false, code: 'conflict', detail: `others keep changing ${name}: look and try again` }
}

function unreachable(failure: StoreFailure): Refusal {
  return {
    ok: false,
    code: 'store-unreachable',
    detail: failure.detail,
    retryAfterMs: RETRY_AFTER_MS,
  }
}
