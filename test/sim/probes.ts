/**
 * One thing at a time in a healed world, so that the bounds can be held to the letter:
 *
 *   kill       L1  its partitions work elsewhere within T + 1 s
 *   move       L2  nobody works on the partition for its drain and two commits at most
 *   leave      L5  what it owned moves, and no more than balance needs
 *   join       L5  no more moves than balance needs
 *   restart    L5  inside the grace, nothing changes its owner
 *   no-quorum  L7  nobody works after T, nobody is granted anything, and all recovers (L4)
 */
import { memberName } from '../../src/core/ids.ts'
import { until, whyUnwell } from './healing.ts'
import type { MemberProcess } from './member-process.ts'
import type { World } from './world.ts'

const SETTLED_MS = 3_000
const SETTLE_LIMIT_MS = 60_000
/** The first piece of work of the new owner: its seals, both ways, and its turn. */
const FIRST_WORK_MS = 1_500
const FAULT = -1

export async function probe(world: World, boundMs: number): Promise<void> {
  const { probe: kind, shape } = world.plan
  if (kind === 'none' || world.base.box.first !== null) return
  if (!(await settled(world))) {
    world.base.box.report('L4', null, `ownership still changes ${SETTLE_LIMIT_MS} ms after healing`)
    return
  }
  if (world.base.box.first !== null) return
  world.base.trace.note(null, `probe: ${kind}`)
  const victim = world.members[world.base.random.integer(world.members.length)] as MemberProcess
  const owned = ownedBy(world, victim.member)
  switch (kind) {
    case 'kill':
      return kill(world, victim, owned)
    case 'move':
      return move(world, victim, owned)
    case 'leave':
      return leave(world, victim, owned)
    case 'join':
      return join(world)
    case 'restart':
      return shape.restartGraceMs > 0 ? restart(world, victim, owned) : undefined
    case 'no-quorum':
      return withoutQuorum(world, boundMs)
    default:
      kind satisfies never
  }
}

async function kill(world: World, victim: MemberProcess, owned: readonly number[]): Promise<void> {
  const { leaseTtlMs, restartGraceMs } = world.plan.shape
  victim.hold(FAULT)
  const killedAtMs = world.nowMs
  const work = owned.map((partition) => world.work.highestWorked(partition)?.session)
  const isElsewhere = () =>
    owned.every((partition, index) => {
      return world.work.highestWorked(partition)?.session !== work[index]
    })
  // etcd notices the end of a lease up to half a second late.
  const boundMs = leaseTtlMs + 500 + restartGraceMs + 1_000
  if (await until(world, isElsewhere, boundMs)) return
  const left = owned.filter((partition, index) => {
    return world.work.highestWorked(partition)?.session === work[index]
  })
  const detail = `${victim.name} was killed, not worked elsewhere after ${world.nowMs - killedAtMs} ms`
  world.base.box.report('L1', left[0] ?? null, detail)
}

async function move(world: World, from: MemberProcess, owned: readonly number[]): Promise<void> {
  const to = world.members.find(({ member }) => member !== from.member)
  const [partition] = owned
  const service = world.service()
  if (to === undefined || partition === undefined || service === null) return
  const target = { type: 'move', partition, to: memberName(to.member) } as const
  const asked = service.admin.requestRebalance(target, { by: 'operator', why: 'probe' })
  const change = await world.base.clock.run(asked)
  if (!change.ok) return
  const isMoved = () => world.truth.liveOwner(partition)?.member === to.member
  const { drainDeadlineMs } = world.plan.shape
  if (!(await until(world, isMoved, drainDeadlineMs + 10_000))) {
    world.base.box.report('L3', partition, `not moved to ${to.member}`)
    return
  }
  const movedAtMs = world.nowMs
  const { session } = world.truth.liveOwner(partition) ?? { session: '' }
  const works = () => world.work.highestWorked(partition)?.session === session
  if (await until(world, works, FIRST_WORK_MS)) return
  const detail = `nobody worked for ${Math.round(world.nowMs - movedAtMs)} ms after the hand-over`
  world.base.box.report('L2', partition, detail)
}

async function leave(world: World, victim: MemberProcess, owned: readonly number[]): Promise<void> {
  const before = ownersOf(world)
  victim.holdBack(FAULT)
  victim.stop()
  const { leaseTtlMs, drainDeadlineMs } = world.plan.shape
  const isGone = () => victim.life === null
  if (!(await until(world, isGone, drainDeadlineMs + leaseTtlMs + 5_000))) {
    world.base.box.report('L3', owned[0] ?? null, `${victim.name} was stopped and does not end`)
    return
  }
  await settled(world)
  const after = ownersOf(world)
  const moved = after.flatMap((owner, partition) =>
    owner === before[partition] ? [] : [partition],
  )
  const others = before.filter((owner) => owner !== victim.member)
  const needed = owned.length + movesNeeded(others, world.members.length - 1, before.length)
  if (moved.length <= needed) return
  const detail = `${victim.name} left: ${moved.length} moves, ${needed} would have done`
  world.base.box.report('L5', moved[0] ?? null, detail)
}

async function join(world: World): Promise<void> {
  const before = ownersOf(world)
  const newcomer = world.addMember('w-new')
  newcomer.start()
  await until(world, () => ownedBy(world, 'w-new').length > 0, 10_000)
  await settled(world)
  const after = ownersOf(world)
  const moves = after.filter((owner, partition) => owner !== before[partition]).length
  const needed = movesNeeded(before, world.members.length)
  if (moves <= needed) return
  world.base.box.report('L5', null, `${moves} moves for a join, ${needed} would have done`)
}

async function restart(
  world: World,
  victim: MemberProcess,
  owned: readonly number[],
): Promise<void> {
  const { clock } = world.base
  // An operator's move may stand out of balance until the membership changes, which a restart does.
  if ((world.service()?.view.plan().length ?? 1) > 0) return
  victim.holdBack(FAULT)
  victim.stop()
  if (!(await until(world, () => victim.life === null, 30_000))) return
  await clock.advance(Math.min(500, world.plan.shape.restartGraceMs / 2))
  victim.release(FAULT)
  await settled(world)
  for (const partition of owned) {
    const owner = world.truth.liveOwner(partition)?.member
    if (owner === victim.member) continue
    world.base.box.report('L5', partition, `${victim.name} was restarted, ${owner} owns it now`)
  }
}

async function withoutQuorum(world: World, boundMs: number): Promise<void> {
  const { clock, etcd, box } = world.base
  const { leaseTtlMs } = world.plan.shape
  etcd.setAvailability('no-leader')
  await clock.advance(leaseTtlMs)
  const admissions = world.work.admissions
  await clock.advance(3_000)
  if (world.work.admissions > admissions) box.report('L7', null, 'work without quorum, after T')
  etcd.setAvailability('up')
  const upAtMs = world.nowMs
  if (await until(world, () => whyUnwell(world, upAtMs) === null, boundMs)) return
  box.report('L7', null, `quorum is back: ${whyUnwell(world, upAtMs)}`)
}

/** True once no partition changed its owner for a while and nothing is moving. */
async function settled(world: World): Promise<boolean> {
  let changes = -1
  let sinceMs = world.nowMs
  const isSettled = () => {
    const isMoving = [...world.truth.records.values()].some(({ record }) => {
      return record.phase !== 'owned'
    })
    if (world.ownershipChanges !== changes || isMoving) {
      changes = world.ownershipChanges
      sinceMs = world.nowMs
    }
    if (world.nowMs - sinceMs < SETTLED_MS || !isEveryoneThere(world)) return false
    // An owner whose lease outlives its session (a new leader gives leases their time anew) is not at work.
    return whyUnwell(world, sinceMs) === null
  }
  return until(world, isSettled, SETTLE_LIMIT_MS)
}

/** Whoever runs has its session: one that comes later (a twin had its name) would be a join of its own. */
function isEveryoneThere({ members }: World): boolean {
  return members.every(({ isUp, worker }) => !isUp || (worker?.deadlineInMs() ?? 0) > 0)
}

function ownersOf(world: World): readonly (string | null)[] {
  const { partitions } = world.plan.shape
  return Array.from({ length: partitions }, (_, partition) => {
    return world.truth.liveOwner(partition)?.member ?? null
  })
}

function ownedBy(world: World, member: string): readonly number[] {
  return ownersOf(world).flatMap((owner, partition) => (owner === member ? [partition] : []))
}

/** The fewest moves away from who holds more than its share of so many partitions among so many members. */
function movesNeeded(
  owners: readonly (string | null)[],
  members: number,
  partitions = owners.length,
): number {
  const counts = new Map<string, number>()
  for (const owner of owners) {
    if (owner !== null) counts.set(owner, (counts.get(owner) ?? 0) + 1)
  }
  const low = Math.floor(partitions / members)
  const extra = partitions - low * members
  const sorted = [...counts.values()].sort((a, b) => b - a)
  return sorted.reduce((sum, count, index) => {
    return sum + Math.max(0, count - (index < extra ? low + 1 : low))
  }, 0)
}
