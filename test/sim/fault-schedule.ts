/**
 * Runs the faults of a plan in a world: each at its time, or at the moment that it aims for, until its
 * end or until all heals. Counts what was hit in which phase.
 */
import type { Hit, Strike } from './fault.ts'
import {
  FAULT_KINDS,
  type FaultKind,
  factsOf,
  PARTITION_PHASES,
  type PartitionPhase,
} from './fault-kinds.ts'
import { strikeAsOperator } from './operator-faults.ts'
import type { PlannedFault } from './plan.ts'
import { strikeMember, strikeObserver, strikeServe } from './process-faults.ts'
import { ServerFaults } from './server-faults.ts'
import type { World } from './world.ts'

/** How long a fault waits for the phase that it aims for. */
const AIM_MS = 5_000
const LOOK_MS = 50

export type Coverage = Partial<Record<FaultKind, Partial<Record<PartitionPhase, number>>>>

export class FaultSchedule {
  /** Faults that struck, by kind. */
  readonly struck: Partial<Record<FaultKind, number>> = {}
  readonly coverage: Coverage = {}
  readonly servers: ServerFaults
  /** When the last fault began or ended. */
  lastChangeMs = Number.NEGATIVE_INFINITY
  private readonly world: World
  private readonly active = new Map<
    number,
    { readonly kind: FaultKind; readonly end: () => void }
  >()
  private isOver = false

  constructor(world: World) {
    this.world = world
    this.servers = new ServerFaults(world)
  }

  get count(): number {
    return Object.values(this.struck).reduce((sum, count) => sum + count, 0)
  }

  get isQuiet(): boolean {
    return this.active.size === 0
  }

  isActive(kinds: ReadonlySet<FaultKind>): boolean {
    for (const { kind } of this.active.values()) if (kinds.has(kind)) return true
    return false
  }

  start(faults: readonly PlannedFault[]): void {
    const { clock } = this.world.base
    for (const [id, fault] of faults.entries()) {
      clock.schedule(fault.atMs, () =>
        this.due({ fault, id, partition: null }, fault.atMs + AIM_MS),
      )
    }
  }

  /** Ends every fault that lasts, in the order in which they began; none begins any more. */
  heal(): void {
    this.isOver = true
    for (const id of [...this.active.keys()]) this.end(id)
  }

  private due(strike: Strike, untilMs: number): void {
    if (this.isOver) return
    const { aim } = strike.fault
    const partition = aim === null ? null : this.find(aim, strike.fault.other)
    if (aim !== null && partition === null && this.world.nowMs < untilMs) {
      this.world.base.clock.schedule(LOOK_MS, () => this.due(strike, untilMs))
      return
    }
    this.strike({ ...strike, partition })
  }

  private find(aim: PartitionPhase, from: number): number | null {
    const { partitions } = this.world.plan.shape
    for (let step = 0; step < partitions; step += 1) {
      const partition = (from + step) % partitions
      if (this.world.phaseOf(partition) === aim) return partition
    }
    return null
  }

  private strike(strike: Strike): void {
    const { fault, id } = strike
    const phases = this.phases()
    const hit = this.hit(strike)
    if (hit === null) return
    this.lastChangeMs = this.world.nowMs
    this.struck[fault.kind] = (this.struck[fault.kind] ?? 0) + 1
    this.cover(fault.kind, hit, phases)
    const { end } = hit
    const forText = end === null ? '' : ` for ${fault.forMs} ms`
    this.world.base.trace.note(null, `FAULT ${fault.kind} on ${hit.on}${forText}`)
    if (end === null) return
    this.active.set(id, { kind: fault.kind, end })
    this.world.base.clock.schedule(fault.forMs, () => this.end(id))
  }

  private hit(strike: Strike): Hit | null {
    if (strike.fault.kind === 'lease-revoked') return strikeMember(this.world, strike)
    switch (FAULT_KINDS[strike.fault.kind].target) {
      case 'worker':
        return strikeMember(this.world, strike)
      case 'serve':
        return strikeServe(this.world, strike)
      case 'observer':
        return strikeObserver(this.world, strike)
      case 'etcd':
      case 'nats':
        return this.servers.strike(strike)
      case 'operator':
        return strikeAsOperator(this.world, strike)
      default:
        return factsOf(strike.fault.kind).target as never
    }
  }

  private end(id: number): void {
    const active = this.active.get(id)
    if (active === undefined) return
    this.active.delete(id)
    this.lastChangeMs = this.world.nowMs
    this.world.base.trace.note(null, `FAULT ${active.kind} ends`)
    active.end()
  }

  private phases(): readonly PartitionPhase[] {
    const { partitions } = this.world.plan.shape
    return Array.from({ length: partitions }, (_, partition) => this.world.phaseOf(partition))
  }

  private cover(
    kind: FaultKind,
    { member, partition }: Hit,
    phases: readonly PartitionPhase[],
  ): void {
    const cells = this.coverage[kind] ?? {}
    this.coverage[kind] = cells
    const seen = new Set<PartitionPhase>()
    for (const [index, phase] of phases.entries()) {
      if (partition !== undefined && partition !== index) continue
      if (member !== undefined && !this.concerns(index, member)) continue
      seen.add(phase)
    }
    // Once per fault, however many partitions were in that phase.
    for (const phase of PARTITION_PHASES) {
      if (seen.has(phase)) cells[phase] = (cells[phase] ?? 0) + 1
    }
  }

  /** It owns the partition, owned it last, or is to get it. */
  private concerns(partition: number, member: string): boolean {
    const record = this.world.truth.records.get(partition)?.record
    if (record === undefined) return false
    if (record.phase === 'vacant') return record.previous?.member === member
    if (record.phase === 'revoking' && record.move.to === member) return true
    return record.owner.member === member
  }
}
