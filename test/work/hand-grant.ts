/** A grant that the test itself makes and ends, for handlers without a group around them. */
import { groupName, sessionId } from '../../src/core/ids.ts'
import { createTenureError } from '../../src/core/tenure-error.ts'
import type { Position, Token } from '../../src/core/token.ts'
import type { Partition, PartitionHandlers } from '../../src/runtime/worker-options.ts'

export class HandGrant implements Partition {
  readonly token: Token
  inFlight = 0
  /** What resources were reported to have sealed. */
  readonly refusals: Position[] = []
  private readonly drainingController = new AbortController()
  private readonly lostController = new AbortController()

  constructor(partition: number, generation: number) {
    this.token = {
      group: groupName('orders'),
      partition,
      incarnation: 1,
      generation,
      session: sessionId(generation.toString(16).padStart(16, '0')),
    }
  }

  get id(): number {
    return this.token.partition
  }

  get draining(): AbortSignal {
    return this.drainingController.signal
  }

  get signal(): AbortSignal {
    return this.lostController.signal
  }

  async work<T>(fn: (partition: Partition) => T | Promise<T>): Promise<T> {
    if (this.draining.aborted) throw createTenureError('work-refused', 'the grant is over')
    this.inFlight += 1
    try {
      return await fn(this)
    } finally {
      this.inFlight -= 1
    }
  }

  check(): void {
    if (this.signal.aborted) throw createTenureError('lost', 'the grant is over')
  }

  refused(highest: Position): void {
    this.refusals.push(highest)
  }

  revoke(): void {
    this.drainingController.abort(createTenureError('draining', 'revoked'))
  }

  lose(): void {
    const lost = createTenureError('lost', 'lost')
    this.drainingController.abort(lost)
    this.lostController.abort(lost)
  }
}

export type Served = {
  readonly grant: HandGrant
  /** How `run` ended: null, or what it threw. */
  readonly ended: Promise<unknown>
  /** Revoke, drain, release. */
  handOver(): Promise<void>
  /** Ends the grant as lost, waiting for nothing. */
  lose(): void
}

/** Acquires and serves the partition at the generation. */
export async function serve<Cursor>(
  handlers: PartitionHandlers<Cursor>,
  partition: number,
  generation: number,
): Promise<Served> {
  const grant = new HandGrant(partition, generation)
  const cursor = (await handlers.acquire?.(grant)) as Cursor
  const ended = Promise.resolve(handlers.run?.(grant, cursor)).then(
    () => null,
    (error: unknown) => error,
  )
  return {
    grant,
    ended,
    async handOver() {
      grant.revoke()
      await ended
      await handlers.release?.(grant, cursor)
    },
    lose() {
      grant.lose()
      void handlers.lost?.(grant, cursor, 'deadline')
    },
  }
}
