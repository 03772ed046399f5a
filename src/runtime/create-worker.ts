/**
 * Puts a worker together over the ports: group set-up, mirror, committer, member, broadcast. Used by
 * `startWorker` with the real adapters and by `tenure/testing` with those in memory.
 */
import type { GroupName, MemberName, SessionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { MemberRecord, MemberState } from '../core/member-record.ts'
import type { PreferenceOrderFactory } from '../core/preference-order.ts'
import { RECORD_VERSION } from '../core/record-format.ts'
import type { Broadcast, Subscription } from '../ports/broadcast.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { Committer } from './committer.ts'
import { ensureGroup } from './group-setup.ts'
import { Member } from './member.ts'
import { MemberSession } from './member-session.ts'
import { Mirror } from './mirror.ts'
import { RewindWatch } from './rewind-watch.ts'
import { createServingVoice } from './serving-voice.ts'
import { WorkerRuntime } from './worker.ts'
import type { Worker, WorkerOptions } from './worker-options.ts'

export type CreateWorkerOptions<Cursor> = Omit<WorkerOptions<Cursor>, 'group' | 'member'> & {
  readonly group: GroupName
  readonly member: MemberName
  readonly keys: GroupKeys
  readonly store: Store
  readonly broadcast: Broadcast
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  readonly orderOf: PreferenceOrderFactory
  /** Called last. */
  readonly close: () => Promise<void>
}

/** @throws TenureError as `ensureGroup` does. */
export async function createWorker<Cursor>(options: CreateWorkerOptions<Cursor>): Promise<Worker> {
  const { group, member, keys, store, clock, random, telemetry, broadcast } = options
  const config = await ensureGroup({ store, keys, clock, group, settings: options.settings ?? {} })
  const mirror = new Mirror({ group, keys, store, clock, random, telemetry })
  await mirror.ready
  const rewinds = new RewindWatch({ group, keys, store, clock, telemetry, mirror })
  const committer = new Committer({
    store,
    keys,
    clock,
    timeoutMs: commitTimeout(config.leaseTtlMs),
  })
  const voice = createServingVoice({
    ...{ group, member, broadcast, clock, random },
    movesUnderWay: () => mirror.state.revoking,
  })
  const settings = { ttlMs: config.leaseTtlMs, marginMs: config.marginMs }
  const describe = (session: SessionId, state: MemberState) => memberRecord(options, session, state)
  const worker: WorkerRuntime<Cursor> = new WorkerRuntime<Cursor>({
    group,
    member,
    state: mirror.state,
    clock,
    telemetry,
    handlers: options,
    limits: options.limits ?? {},
    serving: voice,
    createMember: (host, failed) =>
      new Member({
        ...{ group, member, keys, clock, random, telemetry, mirror, committer, host, failed },
        orderOf: options.orderOf,
        openSession: (listener) =>
          new MemberSession({
            ...{ group, member, keys, store, clock, random, telemetry, mirror, settings },
            describe,
            listener,
          }),
      }),
    close: async () => {
      reporting.close()
      voice.close()
      rewinds.close()
      mirror.close()
      await options.close()
    },
  })
  const reporting = reportConnection(broadcast, telemetry)
  voice.listen(
    (partition, position) => worker.heard(partition, position),
    () => clock.monotonicMs() - (mirror.currentAtMs ?? Number.NEGATIVE_INFINITY),
  )
  return worker
}

/** Each change of the broadcast's connection; what it was at the start is no change. */
export function reportConnection(broadcast: Broadcast, telemetry: Telemetry): Subscription {
  return broadcast.onStatus((status) => {
    if (status === 'closed') return
    telemetry.record({ type: 'broadcast-connected', connected: status === 'connected' })
  })
}

/** Long enough for a slow disk, short enough to settle the outcome within the session's life. */
function commitTimeout(ttlMs: number): number {
  return Math.max(500, Math.min(3000, ttlMs / 3))
}

function memberRecord<Cursor>(
  options: CreateWorkerOptions<Cursor>,
  session: SessionId,
  state: MemberState,
): MemberRecord {
  return {
    member: options.member,
    session,
    address: options.address ?? '',
    weight: options.weight ?? 1,
    capacity: options.capacity ?? null,
    zone: options.zone ?? '',
    labels: options.labels ?? {},
    state,
    versions: [RECORD_VERSION],
  }
}
