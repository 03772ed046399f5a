/**
 * Is the mirror's state what the store holds? Two looks, both cheap at any size:
 *
 * 1. the summary: count of keys and newest mod revision. It sees a key too many or too few, and news
 *    that never came.
 * 2. the sweep: one page of keys each time, round and round, each key's mod revision compared. It sees
 *    a change that was lost in the middle, which the summary cannot once later changes have come.
 *
 * A difference may be news on its way. It counts as an error only when it stands twice: the same on
 * both sides at two looks, with nothing of the kind arrived in between.
 */
import type { GroupState } from '../core/group-state.ts'
import type { KeyValue } from '../core/transaction.ts'

export const SWEEP_KEYS = 1000

export type Finding = 'same' | 'differs' | 'stands'

export class MirrorAudit {
  private readonly state: GroupState
  private summaryBefore: string | null = null
  private keysBefore = new Map<string, string>()
  private after: string | null = null

  constructor(state: GroupState) {
    this.state = state
  }

  /** Forgets what it saw: the state is fresh. */
  reset(): void {
    this.summaryBefore = null
    this.keysBefore.clear()
  }

  summary(theirs: { readonly count: number; readonly newestModRevision: number }): Finding {
    const ours = this.state.summary()
    if (ours.count === theirs.count && ours.newestModRevision === theirs.newestModRevision) {
      this.summaryBefore = null
      return 'same'
    }
    const seen = [theirs.count, theirs.newestModRevision, ours.count, ours.newestModRevision].join()
    const stands = seen === this.summaryBefore
    this.summaryBefore = seen
    return stands ? 'stands' : 'differs'
  }

  /** The page to look at next. */
  get page(): { readonly limit: number; readonly after?: string } {
    return this.after === null ? { limit: SWEEP_KEYS } : { limit: SWEEP_KEYS, after: this.after }
  }

  /** @param more whether keys follow the page */
  sweep(entries: readonly KeyValue[], more: boolean): Finding {
    const differing = new Map<string, string>()
    let stands = false
    for (const { key, modRevision } of entries) {
      const known = this.state.modRevision(key)
      if (known === modRevision) continue
      const seen = `${modRevision}/${known}`
      differing.set(key, seen)
      if (this.keysBefore.get(key) === seen) stands = true
    }
    this.keysBefore = differing
    if (differing.size > 0) return stands ? 'stands' : 'differs'
    this.after = more ? (entries[entries.length - 1]?.key ?? null) : null
    return 'same'
  }
}
