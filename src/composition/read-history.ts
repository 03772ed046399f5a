/**
 * A group's ownership history out of etcd itself: every revision of its partition records that etcd still
 * keeps, oldest first.
 *
 *   where do the records stand now? → watch from revision 1 ──compacted──▶ list at the oldest revision
 *   kept, watch from there → until the watch has come as far as the records stood
 *
 * etcd keeps no times but those that each record carries (the writer's wall clock), so the history is not
 * `timed`. What was compacted away is not there; a partition whose first grant is among that shows as a
 * gap when it is verified.
 */
import type { TenureConfig } from '../cli/tenure-config.ts'
import { groupName } from '../core/ids.ts'
import { type GroupKeys, groupKeys } from '../core/keys.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { KeyValue } from '../core/transaction.ts'
import { createEtcdStore } from '../etcd/etcd-store.ts'
import { type HistoryEvent, type HistoryLog, historyEventOf } from '../evidence/history-log.ts'
import type { Store, WatchEnd, WatchEvent } from '../ports/store.ts'

const CALL_TIMEOUT_MS = 5000
const TIMEOUT_MS = 120_000
const PAGE_KEYS = 5000

/** @throws TenureError `store-unreachable`, `unknown-group`, or `timed-out`. */
export async function readHistory(config: TenureConfig, group: string): Promise<HistoryLog> {
  const store = createEtcdStore(config.etcd)
  try {
    return await historyOf(store, groupKeys(config.keyPrefix, groupName(group)), group)
  } finally {
    await store.close()
  }
}

export async function historyOf(store: Store, keys: GroupKeys, group: string): Promise<HistoryLog> {
  const standing = await listAt(store, keys)
  if (standing.length === 0) {
    const message = `etcd has no records of a group "${group}": correct the group or the key prefix`
    throw createTenureError('unknown-group', message)
  }
  const until = newestRevision(standing.filter(({ key }) => isRecord(keys, key)))
  if (until === 0) return { events: [], missing: [], timed: false }
  const events: HistoryEvent[] = []
  const take = (change: WatchEvent) => {
    const event = historyEventOf(keys, change, 0)
    if (event?.type === 'record') events.push({ ...event, atMs: event.record.atMs })
  }
  let from = 1
  for (;;) {
    const end = await follow(store, keys, from, until, take)
    if (end === null) return { events, missing: [], timed: false }
    if (end.reason !== 'compacted') throw unreachable(end.detail)
    const oldest = end.compactRevision
    const base = await listAt(store, keys, oldest)
    events.length = 0
    const inOrder = [...base].sort((a, b) => a.modRevision - b.modRevision)
    for (const entry of inOrder) take({ type: 'put', entry })
    if (newestRevision(base.filter(({ key }) => isRecord(keys, key))) >= until) {
      return { events, missing: [], timed: false }
    }
    from = oldest + 1
  }
}

/** Null: the watch came as far as `until`. */
function follow(
  store: Store,
  keys: GroupKeys,
  from: number,
  until: number,
  take: (change: WatchEvent) => void,
): Promise<WatchEnd | null> {
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void) => {
      clearTimeout(timer)
      watch.close()
      settle()
    }
    const watch = store.watch(keys.prefix, from, {
      events: (changes) => {
        for (const change of changes) take(change)
        const last = changes[changes.length - 1]
        const revision = last?.type === 'put' ? last.entry.modRevision : (last?.modRevision ?? 0)
        if (revision >= until) finish(() => resolve(null))
      },
      progress: (revision) => {
        if (revision >= until) finish(() => resolve(null))
      },
      ended: (end) => finish(() => resolve(end)),
    })
    const timer = setTimeout(() => {
      const message = `etcd told no more of its history for ${TIMEOUT_MS / 1000} s`
      finish(() => reject(createTenureError('timed-out', message)))
    }, TIMEOUT_MS)
  })
}

async function listAt(
  store: Store,
  keys: GroupKeys,
  atRevision?: number,
): Promise<readonly KeyValue[]> {
  const entries: KeyValue[] = []
  let pinned = atRevision
  for (;;) {
    const after = entries[entries.length - 1]?.key
    const reply = await store.list(
      {
        prefix: keys.prefix,
        limit: PAGE_KEYS,
        ...(after === undefined ? {} : { after }),
        ...(pinned === undefined ? {} : { atRevision: pinned }),
      },
      { timeoutMs: CALL_TIMEOUT_MS },
    )
    if (!reply.ok) throw unreachable(reply.detail)
    pinned ??= reply.revision
    entries.push(...reply.value.entries)
    if (!reply.value.more) return entries
  }
}

function isRecord(keys: GroupKeys, key: string): boolean {
  return key.startsWith(`${keys.prefix}partitions/`)
}

function newestRevision(entries: readonly KeyValue[]): number {
  return entries.reduce((newest, { modRevision }) => Math.max(newest, modRevision), 0)
}

function unreachable(detail: string) {
  return createTenureError('store-unreachable', `etcd's history cannot be read: ${detail}`)
}
