/**
 * Operators who change things at bad moments, through whichever serve process is up. A change that lasts
 * is undone at its end, by an operator who does not give up; one that could not be made is of no account.
 */
import { type MemberName, memberName } from '../../src/core/ids.ts'
import type { Change, GroupAdmin } from '../../src/ports/group-access.ts'
import type { GroupService } from '../../src/runtime/group-service.ts'
import type { Hit, Strike } from './fault.ts'
import type { World } from './world.ts'

const UNDO_AGAIN_MS = 1_000
const BY = { by: 'operator', why: 'simulated' }

export function strikeAsOperator(world: World, strike: Strike): Hit | null {
  const service = world.service()
  if (service === null) return null
  const { fault } = strike
  const { admin } = service
  const partition = strike.partition ?? fault.other % world.plan.shape.partitions
  const member = chosenMember(world, fault.target)
  // Whom an order is about, where it is about one: with an aim, the partition's owner.
  const victim = ownerOf(world, strike.partition) ?? member
  switch (fault.kind) {
    case 'move':
      attempt(world, admin.requestRebalance({ type: 'move', partition, to: member }, BY))
      return { partition, on: `${partition} to ${member}`, end: null }
    case 'drain':
      attempt(world, admin.requestRebalance({ type: 'drain', member: victim }, BY))
      return { member: victim, on: victim, end: null }
    case 'rebalance':
      attempt(world, admin.requestRebalance({ type: 'balance' }, BY))
      return { on: 'group', end: null }
    case 'cancel':
      return cancel(world, service, partition, member)
    case 'freeze':
      attempt(world, admin.setFreeze({ ...BY, untilMs: null }))
      return { on: 'group', end: undo(world, (again) => again.clearFreeze()) }
    case 'cordon':
      attempt(world, admin.setCordon(victim, BY))
      return {
        ...{ member: victim, on: victim },
        end: undo(world, (again) => again.clearCordon(victim)),
      }
    case 'disable':
      attempt(world, admin.setDisabled(partition, BY))
      return {
        ...{ partition, on: String(partition) },
        end: undo(world, (again) => again.clearDisabled(partition)),
      }
    case 'disable-group':
      attempt(world, admin.setDisabled(null, BY))
      return { on: 'group', end: undo(world, (again) => again.clearDisabled(null)) }
    case 'evict':
      attempt(world, admin.evict(victim, BY))
      return { member: victim, on: victim, end: null }
    case 'raise-incarnation':
      attempt(world, admin.raiseIncarnation(BY))
      return { on: 'group', end: null }
    default:
      throw new Error(`no fault of an operator: ${fault.kind}`)
  }
}

/** Ends the rebalance under way, or one that is asked for now and thought better of. */
function cancel(
  world: World,
  { admin, view }: GroupService,
  partition: number,
  to: MemberName,
): Hit {
  const open = view.rebalances().find(({ state }) => state === 'running' || state === 'requested')
  if (open !== undefined) {
    attempt(world, admin.cancelRebalance(open.id))
    return { on: `${open.kind.type} ${open.id}`, end: null }
  }
  const { clock, random } = world.base
  const id = random.operationId()
  attempt(world, admin.requestRebalance({ type: 'move', partition, to }, BY, id))
  clock.schedule(random.fraction() * 40, () => {
    const service = world.service()
    if (service !== null) attempt(world, service.admin.cancelRebalance(id))
  })
  return { partition, on: `move of ${partition} to ${to}`, end: null }
}

/** Lifts every mark that stands, if an operator can do anything right now. */
export function liftMarks(world: World): void {
  const { truth } = world
  const service = world.service()
  if (service === null) return
  const { admin } = service
  if (truth.isFrozen) attempt(world, admin.clearFreeze())
  for (const member of truth.cordons) attempt(world, admin.clearCordon(memberName(member)))
  for (const what of truth.disabled) {
    attempt(world, admin.clearDisabled(what === 'group' ? null : what))
  }
}

function attempt(world: World, change: Promise<Change<unknown>>): void {
  change.catch((error: unknown) => world.base.box.crash(error, 'an operator'))
}

/** An operator who tries again until it is undone. */
function undo(world: World, change: (admin: GroupAdmin) => Promise<Change<unknown>>): () => void {
  const { clock, box } = world.base
  const again = () => {
    if (world.base.isClosing) return
    const service = world.service()
    if (service === null) {
      clock.schedule(UNDO_AGAIN_MS, again)
      return
    }
    change(service.admin).then(
      ({ ok }) => {
        if (!ok) clock.schedule(UNDO_AGAIN_MS, again)
      },
      (error: unknown) => box.crash(error, 'an operator'),
    )
  }
  return again
}

function ownerOf(world: World, partition: number | null): MemberName | null {
  const record = partition === null ? undefined : world.truth.records.get(partition)?.record
  return record === undefined || record.phase === 'vacant' ? null : record.owner.member
}

function chosenMember(world: World, target: number) {
  const names = [...new Set(world.members.map(({ member }) => member))]
  return memberName(names[target % names.length] ?? 'w1')
}
