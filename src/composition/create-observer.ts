/** `createObserver`: follows a group's ownership map over NATS alone. */
import { groupName } from '../core/ids.ts'
import { createObserver as createRuntimeObserver } from '../runtime/observer.ts'
import type { Observer } from '../runtime/observer-types.ts'
import { clock, random, shareBroadcast } from './connections.ts'
import { type ConnectionOptions, logTelemetry, readEnvironment } from './environment.ts'

export type CreateObserverOptions = Pick<ConnectionOptions, 'nats' | 'telemetry'> & {
  readonly group: string
  /** Age from which `stale` is true. Default 5000 ms. */
  readonly staleAfterMs?: number
}

/**
 * Answers who owns what from memory; needs NATS only. `observer.ready` resolves with the first map.
 *
 * @throws TenureError `invalid-name`, `invalid-config`.
 * @example
 * const observer = await createObserver({ group: 'orders' })
 * await observer.ready
 * const owner = observer.owner('customer-17') // { member, address, generation, serving, … } | null
 */
export async function createObserver(options: CreateObserverOptions): Promise<Observer> {
  const group = groupName(options.group)
  const environment = readEnvironment()
  const broadcast = await shareBroadcast(options.nats ?? environment.nats)
  const { staleAfterMs } = options
  const observer = createRuntimeObserver({
    ...{ group, broadcast: broadcast.value, clock, random },
    telemetry: options.telemetry ?? logTelemetry(environment),
    ...(staleAfterMs === undefined ? {} : { staleAfterMs }),
  })
  const close = () => {
    observer.close()
    void broadcast.release()
  }
  // The prototype stays the observer's own, so that lookups cost nothing extra.
  return Object.create(observer, { close: { value: close } }) as Observer
}
