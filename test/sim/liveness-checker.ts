/**
 * Liveness while faults go on, judged only where DESIGN promises it:
 *
 *   L6  no partition stays ownerless while some member has been up, connected and eligible all the time,
 *       and etcd has been there all the time
 *   L3  no drain outlasts its deadline by more than its policy needs (`wait` excepted), under the same
 *       conditions for the owner
 *   L7  with etcd without quorum for longer than T, nobody serves
 *
 * A look each half second. A fault that touches a member or etcd starts the time of that one anew, so
 * the bound counts only what was undisturbed.
 */
import type { FaultSchedule } from './fault-schedule.ts'
import type { MemberProcess } from './member-process.ts'
import type { World } from './world.ts'

const LOOK_MS = 500
const AWAKE_MS = 1

export class LivenessChecker {
  /** Looks at which an ownerless or draining partition was held against the bound. */
  looks = 0
  private readonly world: World
  private readonly faults: FaultSchedule
  /** Since when a member has been fit to take partitions. */
  private readonly fitSince = new Map<MemberProcess, number>()
  private readonly ownerlessSince = new Map<number, number>()
  private readonly drainingSince = new Map<number, { key: string; sinceMs: number }>()
  private etcdSinceMs = 0
  private isOver = false

  constructor(world: World, faults: FaultSchedule) {
    this.world = world
    this.faults = faults
  }

  /** T as etcd applies it, twice, and 5 s; more where elections wait for a former owner. */
  get boundMs(): number {
    const { leaseTtlMs, restartGraceMs } = this.world.plan.shape
    return 2 * (leaseTtlMs + 500) + 5_000 + restartGraceMs
  }

  start(): void {
    if (this.isOver) return
    this.look()
    this.world.base.clock.schedule(LOOK_MS, () => this.start())
  }

  stop(): void {
    this.isOver = true
  }

  private look(): void {
    const nowMs = this.world.nowMs
    this.lookAtEtcd(nowMs)
    this.lookAtMembers(nowMs)
    const bestSinceMs = Math.min(Number.POSITIVE_INFINITY, ...this.fitSince.values())
    const fitSinceMs = Math.max(bestSinceMs, this.etcdSinceMs)
    const { partitions } = this.world.plan.shape
    for (let partition = 0; partition < partitions; partition += 1) {
      this.lookForOwner(partition, fitSinceMs, nowMs)
      this.lookAtDrain(partition, nowMs)
    }
  }

  private lookAtEtcd(nowMs: number): void {
    const { world } = this
    const isUp = world.base.etcd.availability() === 'up'
    const isFair = world.base.effects.size === 0 && !world.isRewound
    const touchedMs = this.faults.servers.lastEtcdFaultMs
    if (!isUp || !isFair) this.etcdSinceMs = nowMs
    else this.etcdSinceMs = Math.max(this.etcdSinceMs, touchedMs)
    const { downSinceMs } = this.faults.servers
    const { leaseTtlMs } = world.plan.shape
    if (downSinceMs === null || nowMs - downSinceMs <= leaseTtlMs) return
    for (const process of world.members) {
      if (servedBy(process) === null) continue
      // Woken at this very moment, it has not looked at the clock yet. What it admits is judged by itself (S6).
      world.base.clock.schedule(AWAKE_MS, () => {
        const partition = this.faults.servers.downSinceMs === downSinceMs ? servedBy(process) : null
        if (partition === null) return
        const detail = `${process.name} serves although etcd has had no quorum for longer than T`
        world.base.box.report('L7', partition, detail)
      })
    }
  }

  private lookAtMembers(nowMs: number): void {
    const { members } = this.world
    for (const known of this.fitSince.keys()) {
      if (!members.includes(known)) this.fitSince.delete(known)
    }
    for (const member of members) {
      if (!this.isFit(member)) this.fitSince.delete(member)
      else {
        const sinceMs = this.fitSince.get(member) ?? nowMs
        this.fitSince.set(member, Math.max(sinceMs, member.lastFaultMs, member.startedAtMs))
      }
    }
  }

  private isFit(process: MemberProcess): boolean {
    const { truth } = this.world
    const { isUp, worker, effects, member } = process
    if (!isUp || worker === null || effects.size > 0 || process.isTroubled) return false
    if (truth.cordons.has(member) || truth.evictions.has(member)) return false
    return worker.deadlineInMs() > 0
  }

  private lookForOwner(partition: number, fitSinceMs: number, nowMs: number): void {
    const { world } = this
    const { truth } = world
    const isHalted = truth.records.get(partition)?.record.phase === 'halted'
    if (isHalted || truth.isDisabled(partition) || truth.liveOwner(partition) !== null) {
      this.ownerlessSince.delete(partition)
      return
    }
    const sinceMs = this.ownerlessSince.get(partition) ?? nowMs
    this.ownerlessSince.set(partition, sinceMs)
    this.looks += 1
    const forMs = nowMs - Math.max(sinceMs, fitSinceMs)
    if (forMs <= this.boundMs) return
    const detail = `ownerless for ${Math.round(forMs)} ms while an eligible member lives`
    world.base.box.report('L6', partition, detail)
  }

  private lookAtDrain(partition: number, nowMs: number): void {
    const { world } = this
    const { drainDeadlineMs, drainPolicy, leaseTtlMs } = world.plan.shape
    const record = world.truth.records.get(partition)?.record
    // With its owner's session gone it is a vacancy, whatever its phase says.
    const isDraining =
      record?.phase === 'revoking' && world.truth.isAlive(record.owner.member, record.owner.session)
    if (!isDraining || drainPolicy === 'wait') {
      this.drainingSince.delete(partition)
      return
    }
    const key = `${record.generation} ${record.owner.session}`
    const before = this.drainingSince.get(partition)
    const owner = world.members.find(({ member }) => member === record.owner.member)
    const fit = owner === undefined ? undefined : this.fitOrWedgedSince(owner)
    const since = before?.key === key ? before.sinceMs : nowMs
    const sinceMs = fit === undefined ? nowMs : Math.max(since, fit, this.etcdSinceMs)
    this.drainingSince.set(partition, { key, sinceMs })
    this.looks += 1
    const boundMs = drainDeadlineMs + 2 * leaseTtlMs + 5_000
    if (nowMs - sinceMs <= boundMs) return
    const detail = `draining for ${Math.round(nowMs - sinceMs)} ms, policy ${drainPolicy}`
    world.base.box.report('L3', partition, detail)
  }

  /** A wedged handler is what the policies are for; everything else excuses a drain. */
  private fitOrWedgedSince({ isUp, effects, lastFaultMs, startedAtMs }: MemberProcess) {
    if (!isUp || effects.size > 0) return undefined
    return Math.max(lastFaultMs, startedAtMs)
  }
}

/** A partition that the process serves by its own account; null: none, or it is not running. */
function servedBy({ life, worker }: MemberProcess): number | null {
  if (life === null || life.isPaused || life.isOver || worker === null) return null
  return worker.partitions().find(({ status }) => status === 'serving')?.partition ?? null
}
