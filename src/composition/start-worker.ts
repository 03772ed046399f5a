/** `startWorker`: puts a worker together from the adapters of this process. */
import type { GroupName, MemberName } from '../core/ids.ts'
import { groupName } from '../core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../core/keys.ts'
import type { Broadcast } from '../ports/broadcast.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { createWorker } from '../runtime/create-worker.ts'
import type { Worker, WorkerOptions } from '../runtime/worker-options.ts'
import { clock, orderOf, random, shareBroadcast, shareStore } from './connections.ts'
import { type ConnectionOptions, logTelemetry, readEnvironment } from './environment.ts'
import { chooseMemberName } from './member-name.ts'
import { followSignals } from './process-signals.ts'

export type StartWorkerOptions<Cursor> = WorkerOptions<Cursor> & ConnectionOptions

/**
 * Joins the group and serves the partitions that fall to this member. Resolves once the group is known;
 * `worker.ready` once the session lives, `worker.done` last of all.
 *
 * @throws TenureError `invalid-config` or `invalid-name` for bad options, `config-mismatch` when the
 * group has other partitions, TTL or fencing, `store-unreachable` when etcd cannot be reached.
 * @example
 * const worker = await startWorker({
 *   group: 'orders',
 *   acquire: (p) => Cursor.load(p.id),
 *   run: async (p, cursor) => {
 *     for await (const m of cursor.read({ signal: p.draining })) await p.work(() => apply(m, p.token))
 *   },
 *   release: (p, cursor) => cursor.flush(),
 * })
 * await worker.done
 */
export async function startWorker<Cursor = void>(
  options: StartWorkerOptions<Cursor>,
): Promise<Worker> {
  const environment = readEnvironment()
  const group: GroupName = groupName(options.group)
  const member: MemberName = chooseMemberName(options.member ?? environment.worker.member)
  const telemetry: Telemetry = options.telemetry ?? logTelemetry(environment)
  const store = await shareStore(options.etcd ?? environment.etcd)
  const broadcast = await shareBroadcast(options.nats ?? environment.nats)
  const close = async () => {
    await Promise.all([store.release(), broadcast.release()])
  }
  try {
    const worker = await createWorker<Cursor>({
      ...options,
      group,
      member,
      settings: options.settings ?? environment.settings,
      keys: groupKeys(options.keyPrefix ?? environment.keyPrefix ?? DEFAULT_KEY_PREFIX, group),
      store: store.value satisfies Store,
      broadcast: broadcast.value satisfies Broadcast,
      clock,
      random,
      telemetry,
      orderOf,
      close,
    })
    if (options.signals !== false) followSignals(worker)
    options.stop?.addEventListener('abort', () => void worker.stop().catch(() => {}))
    return worker
  } catch (error: unknown) {
    await close()
    throw error
  }
}
