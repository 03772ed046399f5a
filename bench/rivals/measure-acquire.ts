/**
 * Acquire, as the scenario of the same name: members that are connected and warm, but new to the store,
 * until every partition has a holder. Each asks for its own share, and none stands by for the others' yet:
 * the best case of a rival whose members would otherwise all ask for everything.
 */
import type { Figures } from '../../src/bench/bench-types.ts'
import { machineMs } from '../../src/dev/machine-time.ts'
import { type Members, startMembers } from './members.ts'
import type { RivalKind, StageSettings } from './rival-kind.ts'

export async function measureAcquire(
  kind: RivalKind,
  settings: StageSettings & { readonly members: number; readonly deadlineMs: number },
): Promise<Figures> {
  const { prefix, partitions, members: count, leaseTtlMs, deadlineMs } = settings
  const stage = await kind.open(settings)
  let members: Members | null = null
  try {
    members = await startMembers(stage, { prefix, partitions, members: count, leaseTtlMs })
    const all = members
    const beganMs = machineMs()
    all.say('begin')
    const inTime = await all.until(() => all.held() === partitions, kind.settleMs + deadlineMs)
    const endedMs = inTime ? lastHeldMs(all) : machineMs()
    return figuresOf(all, { count, partitions, tookMs: endedMs - beganMs, settleMs: kind.settleMs })
  } finally {
    await members?.close()
    await stage.close()
  }
}

function lastHeldMs({ claims }: Members): number {
  const first = new Map<number, number>()
  for (const { partition, fromMs } of claims) {
    first.set(partition, Math.min(fromMs, first.get(partition) ?? fromMs))
  }
  return Math.max(...first.values())
}

function figuresOf(
  members: Members,
  run: {
    readonly count: number
    readonly partitions: number
    readonly tookMs: number
    readonly settleMs: number
  },
): Figures {
  const { count, partitions, tookMs, settleMs } = run
  const held = members.held()
  const isPartial = held < partitions
  const seconds = Math.round(tookMs / 1000)
  const notes = [
    isPartial ? `partial: ${held} of ${partitions} held after ${seconds} s${cause(members)}` : '',
    settleMs > 0 ? `from the end of its settle time of ${settleMs} ms on` : '',
  ]
  const note = notes.filter(Boolean).join('; ')
  const about = note === '' ? {} : { note }
  const perSecond = (held / Math.max(1, tookMs - settleMs)) * 1000
  const shares = Array.from({ length: count }, (_, place) => members.heldBy(place).length)
  const rate = { metric: 'partitions per second', unit: '1/s', values: [perSecond], ...about }
  if (isPartial) return [rate]
  return [
    rate,
    { metric: 'whole cold start', unit: 'ms', values: [tookMs], ...about },
    {
      metric: 'largest share over the mean',
      unit: '',
      values: [(Math.max(...shares) * count) / partitions],
    },
  ]
}

function cause(members: Members): string {
  const { count, first } = members.failures()
  return count === 0 ? '' : `, ${count} failures, the first: ${first}`
}
