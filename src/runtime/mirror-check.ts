/**
 * One check of a mirror: is the state what the store holds, and did the store's revision go back? The
 * question is a writing transaction, which no server answers from stale data, and one page of keys
 * (`mirror-audit.ts`). What follows from the answer is the mirror's to decide.
 */
import type { GroupState } from '../core/group-state.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { Store } from '../ports/store.ts'
import { type Finding, MirrorAudit } from './mirror-audit.ts'
import { CALL_TIMEOUT_MS } from './mirror-list.ts'

export type CheckFinding =
  | { readonly type: 'failed'; readonly detail: string }
  /** A lower revision once may be a confused answer; `went-back`: twice, its history was replaced. */
  | { readonly type: 'lower' | 'went-back' }
  /** A difference that changes may be news on its way; `out-of-step`: one that stood twice. */
  | { readonly type: 'same' | 'differs' | 'out-of-step' }

/** Until a difference is looked at again; doubles while it changes, up to this or what the size allows. */
const RECHECK_FIRST_MS = 250
const RECHECK_MAX_MS = 4000
/** Of the time between two checks of a group of that size. */
const RECHECK_SHARE = 1 / 10

export class MirrorCheck {
  private readonly state: GroupState
  private readonly keys: GroupKeys
  private readonly store: Store
  private readonly audit: MirrorAudit
  private lowerOnce = false
  /** Null while nothing differs. */
  private recheckMs: number | null = null

  constructor(state: GroupState, keys: GroupKeys, store: Store) {
    this.state = state
    this.keys = keys
    this.store = store
    this.audit = new MirrorAudit(state)
  }

  /** After a new list: what differed before says nothing any more. */
  reset(): void {
    this.audit.reset()
    this.recheckMs = null
  }

  /**
   * @param leastRevision known before the question is sent
   * @param isMoot asked when the transaction has answered: true, and differences don't matter any more
   */
  async run(leastRevision: number, isMoot: () => boolean): Promise<CheckFinding> {
    const { store, keys } = this
    const reply = await store.transact(
      {
        compare: [],
        success: [
          { type: 'delete', key: keys.never },
          { type: 'summary', prefix: keys.prefix },
        ],
        failure: [],
      },
      { timeoutMs: CALL_TIMEOUT_MS },
    )
    if (!reply.ok) return { type: 'failed', detail: reply.detail }
    if (reply.revision < leastRevision) {
      const isSecond = this.lowerOnce
      this.lowerOnce = !isSecond
      return { type: isSecond ? 'went-back' : 'lower' }
    }
    if (isMoot()) return { type: 'differs' }
    this.lowerOnce = false
    const summary = reply.value.results[1]
    const finding = summary?.type === 'summary' ? this.audit.summary(summary) : 'same'
    // A difference that changes may be a lasting one beside news on its way: the keys tell them apart.
    const swept = finding === 'stands' ? finding : await this.sweep()
    const found = swept === 'same' ? finding : swept
    return { type: found === 'stands' ? 'out-of-step' : found === 'same' ? 'same' : 'differs' }
  }

  /** Until the next check after one that found this; null: as usual. */
  again(finding: 'same' | 'differs', resyncMs: number): number | null {
    const nextMs = this.recheckMs === null ? RECHECK_FIRST_MS : this.recheckMs * 2
    const mostMs = Math.max(RECHECK_MAX_MS, resyncMs * RECHECK_SHARE)
    this.recheckMs = finding === 'same' ? null : Math.min(mostMs, nextMs)
    return this.recheckMs
  }

  /** One page of keys more; one that cannot be had, or is stale, shows nothing. */
  private async sweep(): Promise<Finding> {
    const { store, keys } = this
    const request = { prefix: keys.prefix, ...this.audit.page }
    const knownBefore = this.state.revision
    const reply = await store.list(request, { timeoutMs: CALL_TIMEOUT_MS })
    const isNews = reply.ok && reply.revision >= knownBefore
    return isNews ? this.audit.sweep(reply.value.entries, reply.value.more) : 'same'
  }
}
