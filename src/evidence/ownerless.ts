/** From the moment that etcd has no live owner for a partition to its next grant, each time, in ms. */
import type { HistoryEvent } from './history-log.ts'

export function ownerlessTimes(history: readonly HistoryEvent[]): readonly number[] {
  const sessions = new Map<string, string>()
  const owners = new Map<number, { member: string; session: string }>()
  const sinceMs = new Map<number, number>()
  const times: number[] = []
  for (const event of history) {
    if (event.type === 'session-began') sessions.set(event.member, event.session)
    else if (event.type === 'session-gone') {
      const gone = sessions.get(event.member)
      sessions.delete(event.member)
      for (const [partition, owner] of owners) {
        if (owner.session === gone) sinceMs.set(partition, event.atMs)
      }
    } else if (event.record.phase === 'vacant') {
      owners.delete(event.partition)
      sinceMs.set(event.partition, event.atMs)
    } else {
      const { partition, record } = event
      const began = sinceMs.get(partition)
      const { owner } = record
      if (sessions.get(owner.member) !== owner.session) continue
      owners.set(partition, owner)
      if (began === undefined) continue
      sinceMs.delete(partition)
      times.push(event.atMs - began)
    }
  }
  return times
}
