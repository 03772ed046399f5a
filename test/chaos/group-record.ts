/**
 * The harness's own record of what etcd did to the group: one watch on each member from the first
 * revision on, merged by revision. What one of them misses while its member is ended, cut off or
 * compacted, another has; a gap in all of them shows when the history is judged.
 */
import { groupName } from '../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../../src/core/keys.ts'
import { followHistory } from '../../src/dev/history.ts'
import { createEtcdStore } from '../../src/etcd/etcd-store.ts'
import type { HistoryEvent, HistoryLog } from '../../src/evidence/history-log.ts'
import { GROUP } from './layout.ts'

export type GroupRecord = {
  /** A revision that every watch has passed: what is older may be compacted. */
  passedRevision(): number
  /** The newest revision that any watch has heard of. */
  newestRevision(): number
  log(): HistoryLog
  close(): Promise<void>
}

export const KEYS = groupKeys(DEFAULT_KEY_PREFIX, groupName(GROUP))

export function recordGroup(endpoints: readonly string[]): GroupRecord {
  const followers = endpoints.map((endpoint) => {
    const store = createEtcdStore({ endpoints: [endpoint] })
    return { store, history: followHistory(store, KEYS) }
  })
  const lasts = () => followers.map(({ history }) => history.events.at(-1)?.revision ?? 0)
  return {
    passedRevision: () => Math.min(...lasts()),
    newestRevision: () => Math.max(...lasts()),
    log() {
      const whole = followers.some(({ history }) => history.complete())
      const missing = whole ? [] : ['every watch of the harness lost revisions to a compaction']
      return {
        events: merged(followers.map(({ history }) => history.events)),
        missing,
        timed: true,
      }
    },
    async close() {
      for (const { history, store } of followers) {
        history.close()
        await store.close()
      }
    },
  }
}

/** Each event once, as it was first heard. */
function merged(sources: readonly (readonly HistoryEvent[])[]): readonly HistoryEvent[] {
  const known = new Map<string, HistoryEvent>()
  for (const events of sources) {
    for (const event of events) {
      const id = eventId(event)
      const before = known.get(id)
      if (before === undefined || event.atMs < before.atMs) known.set(id, event)
    }
  }
  return [...known.values()].sort((a, b) => a.revision - b.revision)
}

function eventId(event: HistoryEvent): string {
  const of = event.type === 'record' ? event.partition : event.member
  return `${event.revision} ${event.type} ${of}`
}
