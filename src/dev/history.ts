/**
 * The demo's own look at etcd: every revision of the group's records from the first on, stamped with the
 * machine's clock on arrival. It knows nothing of workers but what etcd was told.
 */
import { appendFileSync, writeFileSync } from 'node:fs'
import type { GroupKeys } from '../core/keys.ts'
import { type HistoryEvent, type HistoryLog, historyEventOf } from '../evidence/history-log.ts'
import type { Store, Watch } from '../ports/store.ts'
import { machineMs } from './machine-time.ts'

export type { HistoryEvent } from '../evidence/history-log.ts'

export type History = {
  readonly events: readonly HistoryEvent[]
  /** False when the watch broke for good: then the history has a gap. */
  readonly complete: () => boolean
  /** What is known so far. */
  log(): HistoryLog
  /** Writes it to the file, these lines too; what comes after is added by `close`. */
  save(file: string, more: readonly object[]): void
  close(): void
}

/** Follows the group from revision 1 on; reopens after the last event whenever the watch breaks. */
export function followHistory(store: Store, keys: GroupKeys): History {
  const events: HistoryEvent[] = []
  const missing: string[] = []
  let next = 1
  let closed = false
  let watch: Watch | null = null
  const open = () => {
    if (closed) return
    watch = store.watch(keys.prefix, next, {
      events: (batch) => {
        const atMs = machineMs()
        for (const change of batch) {
          const revision = change.type === 'put' ? change.entry.modRevision : change.modRevision
          next = revision + 1
          const event = historyEventOf(keys, change, atMs)
          if (event !== null) events.push(event)
        }
      },
      progress: () => {},
      ended: (end) => {
        if (end.reason === 'compacted') {
          missing.push(`etcd forgot revisions ${next} to ${end.compactRevision} unseen`)
        } else if (!closed) setTimeout(open, 100)
      },
    })
  }
  open()
  let saved: { readonly file: string; readonly events: number } | null = null
  return {
    events,
    save: (file, more) => {
      saved = { file, events: events.length }
      writeFileSync(file, asText([...historyLines({ events, missing }), ...more]))
    },
    complete: () => missing.length === 0,
    log: () => ({ events: [...events], missing: [...missing], timed: true }),
    close: () => {
      closed = true
      watch?.close()
      // Workers that end hand over and seal to the last: a history that ends earlier lacks those grants.
      if (saved !== null) appendFileSync(saved.file, asText(events.slice(saved.events)))
    },
  }
}

/** As a file that `parseHistory` reads. */
export function historyLines({
  events,
  missing,
}: Pick<HistoryLog, 'events' | 'missing'>): readonly object[] {
  return [...events, ...missing.map((detail) => ({ type: 'gap', detail }))]
}

function asText(lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}
