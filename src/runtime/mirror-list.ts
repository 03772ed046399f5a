/** A whole list of a prefix at one revision, page by page. */
import type { KeyValue } from '../core/transaction.ts'
import type { Store } from '../ports/store.ts'

const PAGE_KEYS = 5000
export const CALL_TIMEOUT_MS = 3000

export type Listed =
  | { readonly ok: true; readonly revision: number; readonly entries: readonly KeyValue[] }
  | { readonly ok: false; readonly detail: string }

/** Fails with the first page that fails, or once `isOver`. */
export async function listAll(
  store: Store,
  prefix: string,
  isOver: () => boolean,
): Promise<Listed> {
  const entries: KeyValue[] = []
  let pinned: { readonly atRevision?: number; readonly after?: string } = {}
  for (;;) {
    const request = { prefix, limit: PAGE_KEYS, ...pinned }
    const reply = await store.list(request, { timeoutMs: CALL_TIMEOUT_MS })
    if (!reply.ok) return { ok: false, detail: reply.detail }
    if (isOver()) return { ok: false, detail: 'no longer wanted' }
    for (const entry of reply.value.entries) entries.push(entry)
    const revision = pinned.atRevision ?? reply.revision
    const last = entries[entries.length - 1]
    if (!reply.value.more || last === undefined) return { ok: true, revision, entries }
    pinned = { atRevision: revision, after: last.key }
  }
}
