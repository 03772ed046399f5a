/**
 * The demo's own look at etcd: every revision of the group's records from the first on, stamped with the
 * machine's clock on arrival. It knows nothing of workers but what etcd was told.
 */

import type { GroupKeys } from '../core/keys.ts'
import { keySubject } from '../core/keys.ts'
import { decodeMemberRecord } from '../core/member-record.ts'
import type { PartitionRecord } from '../core/partition-record.ts'
import { decodePartitionRecord } from '../core/partition-record.ts'
import type { Store, Watch } from '../ports/store.ts'
import { machineMs } from './machine-time.ts'

export type HistoryEvent = { readonly atMs: number; readonly revision: number } & (
  | {
      readonly type: 'record'
      readonly partition: number
      readonly record: PartitionRecord
    }
  | { readonly type: 'session-began'; readonly member: string; readonly session: string }
  | { readonly type: 'session-gone'; readonly member: string }
)

export type History = {
  readonly events: readonly HistoryEvent[]
  /** False when the watch broke for good: then the history has a gap. */
  readonly complete: () => boolean
  close(): void
}

/** Follows the group from revision 1 on; reopens after the last event whenever the watch breaks. */
export function followHistory(store: Store, keys: GroupKeys): History {
  const events: HistoryEvent[] = []
  let next = 1
  let complete = true
  let closed = false
  let watch: Watch | null = null
  const open = () => {
    watch = store.watch(keys.prefix, next, {
      events: (batch) => {
        const atMs = machineMs()
        for (const event of batch) {
          const key = event.type === 'put' ? event.entry.key : event.key
          const revision = event.type === 'put' ? event.entry.modRevision : event.modRevision
          next = revision + 1
          const subject = keySubject(keys, key)
          if (subject.type === 'partition' && event.type === 'put') {
            const { partition } = subject
            const record = decodePartitionRecord(event.entry.value, partition)
            events.push({ type: 'record', atMs, revision, partition, record })
          } else if (subject.type === 'member') {
            const { member } = subject
            if (event.type === 'delete')
              events.push({ type: 'session-gone', atMs, revision, member })
            else {
              const { session } = decodeMemberRecord(event.entry.value)
              events.push({ type: 'session-began', atMs, revision, member, session })
            }
          }
        }
      },
      progress: () => {},
      ended: (end) => {
        if (end.reason === 'compacted') complete = false
        else if (!closed) setTimeout(open, 100)
      },
    })
  }
  open()
  return {
    events,
    complete: () => complete,
    close: () => {
      closed = true
      watch?.close()
    },
  }
}
