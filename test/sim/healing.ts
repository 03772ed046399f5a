/**
 * L4: after the last fault all is owned by live members who may own it, all progresses, and all maps are
 * what etcd holds, within 2T + 5 s; nothing is written more often on the way than a recovery needs.
 *
 * Healing ends every fault, starts what is not up, lifts operators' marks and raises the incarnation if
 * etcd was restored or a partition is halted. The time runs from the moment at which the last of these is done.
 */
import type { FaultSchedule } from './fault-schedule.ts'
import { liftMarks } from './operator-faults.ts'
import { raiseUntilDone } from './server-faults.ts'
import type { World } from './world.ts'

/** Restarted serve processes must be there before an operator can do anything. */
const OPERATOR_LIMIT_MS = 30_000
const LOOK_MS = 100
const LIFT_EVERY_MS = 500
const HEALING_LIMIT_MS = 120_000
/** Grants, revokes and retargets of one partition from the healing on: a climb would exceed it. */
const WRITES_MAX = 16

export async function heal(world: World, faults: FaultSchedule, boundMs: number): Promise<void> {
  const { base } = world
  base.trace.note(null, 'all faults end')
  faults.heal()
  world.place.travel.isSteady = true
  for (const process of [...world.members, ...world.serves]) process.reconnectStore()
  for (const process of world.processes()) process.start()
  if (!(await undoMarks(world))) {
    base.box.report('L4', null, `no operator could undo the marks in ${OPERATOR_LIMIT_MS} ms`)
    return
  }
  if (base.box.first !== null) return
  base.trace.note(null, 'healed')
  world.recordWrites.clear()
  let healedAtMs = world.nowMs
  const isLate = () => world.nowMs - healedAtMs > boundMs
  const isWell = () => {
    // What an operator had sent before may land only now: the time begins anew.
    if (!areMarksGone(world)) healedAtMs = world.nowMs
    return whyUnwell(world, healedAtMs) === null
  }
  await until(world, () => isWell() || isLate(), HEALING_LIMIT_MS)
  if (base.box.first !== null) return
  if (isWell()) boundWrites(world)
  else base.box.report('L4', firstUnwell(world, healedAtMs), whyUnwell(world, healedAtMs) ?? 'late')
}

async function undoMarks(world: World): Promise<boolean> {
  return until(world, () => areMarksGone(world), OPERATOR_LIMIT_MS)
}

/** Has operators lift what stands, now and then, until it is gone. */
function areMarksGone(world: World): boolean {
  const { truth } = world
  const isGone =
    !world.needsRaise && !truth.isFrozen && truth.cordons.size === 0 && truth.disabled.size === 0
  if (isGone || world.nowMs < world.liftedAtMs + LIFT_EVERY_MS) return isGone
  world.liftedAtMs = world.nowMs
  liftMarks(world)
  raiseUntilDone(world)
  return false
}

/** Why not all is as it should be; null: it is. */
export function whyUnwell(world: World, sinceMs: number): string | null {
  const { truth, work } = world
  const { partitions } = world.plan.shape
  for (let partition = 0; partition < partitions; partition += 1) {
    const record = truth.records.get(partition)?.record
    if (record === undefined || truth.liveOwner(partition) === null) {
      return `partition ${partition} has no live owner (${record?.phase ?? 'no record'})`
    }
    if (record.phase === 'halted') return `partition ${partition} is halted`
    if (work.lastAdmissionMs(partition) <= sinceMs) {
      return `partition ${partition} makes no progress (${record.phase})`
    }
    const worked = work.highestWorked(partition)
    if (record.phase === 'owned' && worked?.session !== record.owner.session) {
      return `partition ${partition} is not served by its owner ${record.owner.member}`
    }
  }
  for (const { name, observer } of world.observers) {
    const differs = world.maps.differs(name, observer)
    if (differs !== null) return differs
  }
  return null
}

function firstUnwell(world: World, sinceMs: number): number | null {
  const found = /partition (\d+)/.exec(whyUnwell(world, sinceMs) ?? '')
  return found === null ? null : Number(found[1])
}

function boundWrites(world: World): void {
  for (const [partition, writes] of world.recordWrites) {
    world.recoveryWritesMax = Math.max(world.recoveryWritesMax, writes)
    if (writes <= WRITES_MAX) continue
    world.base.box.report('L4', partition, `${writes} writes of its record in one recovery`)
  }
}

/** Lets time pass until it holds, looking each tenth of a second; false: not within the limit. */
export async function until(
  world: World,
  condition: () => boolean,
  limitMs: number,
): Promise<boolean> {
  const { clock, box } = world.base
  let holds = false
  let isOver = false
  const look = () => {
    if (isOver) return
    holds = box.first !== null || condition()
    if (!holds) clock.schedule(LOOK_MS, look)
  }
  look()
  await clock.runUntil(() => holds || box.first !== null, { limitMs })
  isOver = true
  return holds
}
