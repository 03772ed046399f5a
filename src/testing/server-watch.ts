/** A watch as the in-memory etcd's server side sees it. */
import type { WatchEvent } from '../ports/store.ts'
import type { EtcdChange } from './etcd-data.ts'

export type ServerWatch = {
  readonly prefix: string
  /** Changes below this are not for it. */
  readonly fromRevision: number
  events(events: readonly WatchEvent[]): void
  progress(revision: number): void
  /** The server gives the watch up. */
  broken(detail: string): void
}

/** The events of a change that a watch is to see. */
export function eventsFor(watch: ServerWatch, change: EtcdChange): readonly WatchEvent[] {
  if (change.revision < watch.fromRevision) return []
  return change.events.filter((event) =>
    (event.type === 'put' ? event.entry.key : event.key).startsWith(watch.prefix),
  )
}
