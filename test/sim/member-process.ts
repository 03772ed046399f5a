/**
 * A worker process of the simulated world: production's `createWorker` with a program of keyed work. It
 * seals all resources, reads how far the inputs are done, and applies one input after the other, each in
 * two steps (`resource.ts`).
 *
 * Faults of the program itself: `wedge` (work hangs, so drains overrun), `failAcquires`.
 */
import { memberName } from '../../src/core/ids.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { createWorker } from '../../src/runtime/create-worker.ts'
import { pause } from '../../src/runtime/waiting.ts'
import type { Partition, Worker } from '../../src/runtime/worker-options.ts'
import type { Life } from './life.ts'
import { type Inputs, inputName, type Resource } from './resource.ts'
import type { WorkChecker } from './work-checker.ts'
import type { WorldBase } from './world-base.ts'
import { type Running, WorldProcess } from './world-process.ts'

export type Workplace = {
  readonly resources: readonly Resource[]
  readonly inputs: Inputs
  readonly work: WorkChecker
  readonly workPauseMs: number
  /** Steady: nothing takes long on its way to a resource or back. */
  readonly travel: { isSteady: boolean }
}

type Cursor = { next: number }

export class MemberProcess extends WorldProcess {
  readonly member: string
  worker: Worker | null = null
  private readonly place: Workplace
  private readonly wedges = new Map<number, () => void>()
  private wedged: Promise<void> | null = null
  private readonly failing = new Set<number>()
  private stopping = false

  /** @param name of the place; another place may run a process of the same member */
  constructor(name: string, member: string, base: WorldBase, place: Workplace) {
    super(name, base)
    this.member = member
    this.place = place
  }

  /** Its own program is in trouble, or it is about to end. */
  get isTroubled(): boolean {
    return this.wedges.size > 0 || this.failing.size > 0 || this.stopping
  }

  /** SIGTERM; the process ends once it has handed everything over. */
  stop(): void {
    const { worker, life } = this
    if (worker === null || life === null) {
      this.kill('stopped before it had begun')
      return
    }
    this.stopping = true
    life.clock.schedule(0, () => void worker.stop())
  }

  wedge(fault: number): void {
    const before = this.wedged
    const mine = new Promise<void>((resolve) => {
      this.wedges.set(fault, resolve)
    })
    this.wedged = before === null ? mine : Promise.all([before, mine]).then(() => undefined)
  }

  unwedge(fault: number): void {
    this.wedges.get(fault)?.()
    this.wedges.delete(fault)
    if (this.wedges.size === 0) this.wedged = null
  }

  failAcquires(fault: number, isOn: boolean): void {
    if (isOn) this.failing.add(fault)
    else this.failing.delete(fault)
  }

  protected begin({ life, store, broadcast, random }: Running): void {
    const { group, keys, orderOf, settings } = this.base
    this.stopping = false
    createWorker<Cursor>({
      ...{ group, keys, store, broadcast, random, orderOf, settings },
      member: memberName(this.member),
      clock: life.clock,
      telemetry: { record: (event) => this.record(life, event) },
      acquire: (partition) => this.acquire(life, partition),
      run: (partition, cursor) => this.run(life, partition, cursor),
      close: async () => {},
    }).then(
      (worker) => {
        if (life.isOver) return
        this.worker = worker
        worker.ready.catch(() => undefined)
        worker.done.then(
          () => this.ended(life, this.stopping ? 'stopped' : 'done'),
          (error: unknown) => this.ended(life, error),
        )
      },
      (error: unknown) => this.ended(life, error),
    )
  }

  protected override ending(): void {
    this.worker = null
  }

  private ended(life: Life, why: unknown): void {
    if (life.isOver || this.life !== life) return
    const isExpected =
      typeof why === 'string' ||
      isTenureError(why, 'evicted') ||
      isTenureError(why, 'member-name-in-use') ||
      isTenureError(why, 'store-unreachable')
    if (!isExpected) this.base.box.crash(why, life.name)
    this.kill(why instanceof Error ? why.message : String(why))
  }

  // The program.

  private async acquire(life: Life, p: Partition): Promise<Cursor> {
    const { resources, inputs, work } = this.place
    for (const resource of resources) {
      await life.sleep(this.travelMs())
      if (this.failing.size > 0) throw new Error('the resource cannot be reached')
      const outcome = resource.seal(p.token)
      if (outcome.ok) work.tokenSealed(p.token, resource.name)
      await life.sleep(this.travelMs())
      if (!outcome.ok) {
        p.refused(outcome.highest)
        throw new Error('refused to seal')
      }
    }
    return { next: inputs.acknowledgedUpTo(p.id) + 1 }
  }

  private async run(life: Life, p: Partition, cursor: Cursor): Promise<void> {
    const { workPauseMs } = this.place
    while (!p.draining.aborted) {
      await p.work(() => this.apply(life, p, cursor))
      await pause(life.clock, workPauseMs * (0.5 + this.base.random.fraction()), p.draining)
    }
  }

  private async apply(life: Life, p: Partition, cursor: Cursor): Promise<void> {
    const { resources, inputs, work } = this.place
    const { token } = p
    const piece = work.admitted(life, token)
    const lost = () => work.lost(piece)
    p.signal.addEventListener('abort', lost, { once: true })
    try {
      const number = cursor.next
      const input = inputName(p.id, number)
      await life.sleep(1 + this.base.random.integer(30))
      if (this.wedged !== null) {
        await this.wedged
        await life.sleep(0)
      }
      p.check()
      work.effectBegun(life, token)
      const resource = resources[number % resources.length] as Resource
      const outcome = await this.send(life, () => resource.apply(token, input))
      if (outcome.outcome === 'refused') {
        if (outcome.highest !== null) p.refused(outcome.highest)
        throw new Error('refused to apply')
      }
      inputs.acknowledge(p.id, number)
      cursor.next = number + 1
    } finally {
      p.signal.removeEventListener('abort', lost)
      work.ended(piece)
    }
  }

  /** The request travels whatever becomes of the process; the answer comes back only to a live one. */
  private send<T>(life: Life, execute: () => T): Promise<T> {
    return new Promise((resolve) => {
      this.base.clock.schedule(this.travelMs(), () => {
        const outcome = execute()
        life.clock.schedule(this.travelMs(), () => resolve(outcome))
      })
    })
  }

  /** Mostly quick; now and then long enough for ownership to move on twice. */
  private travelMs(): number {
    const { random } = this.base
    const isLong = random.fraction() < 0.02 && !this.place.travel.isSteady
    return isLong ? 200 + random.integer(6_000) : 0.5 + random.fraction() * 4
  }

  private record(life: Life, event: TelemetryEvent): void {
    if (life.isOver) return
    switch (event.type) {
      case 'granted':
      case 'serving':
      case 'suspected':
      case 'reopened':
      case 'draining':
      case 'drain-overdue':
      case 'released':
      case 'lost':
      case 'acquire-failed': {
        const { partition, incarnation, generation } = event
        const more = 'cause' in event ? ` (${event.cause})` : ''
        const at = `${incarnation}.${generation}`
        this.base.trace.note(partition, `${life.name} ${event.type}${more} ${at}`)
        return
      }
      case 'session-opened':
      case 'session-ended': {
        const cause = event.type === 'session-ended' ? ` (${event.cause})` : ''
        this.base.trace.note(null, `${life.name} ${event.type}${cause} ${event.session}`)
        return
      }
      case 'alarm':
        this.base.trace.note(null, `${life.name} alarm ${event.code}: ${event.detail}`)
        if (event.code === 'invariant-broken') this.base.box.crash(event.detail, life.name)
        return
      default:
        return
    }
  }
}
