/** Faults that hit one process: a member, a serve process or an observer, or its connections. */
import type { Hit, Strike } from './fault.ts'
import type { FaultKind } from './fault-kinds.ts'
import type { MemberProcess } from './member-process.ts'
import type { Effect } from './weather.ts'
import type { World } from './world.ts'
import type { WorldProcess } from './world-process.ts'

const HOUR_MS = 3_600_000

/** Faults of connections, by what the process suffers from. */
const CONNECTIONS: Partial<Record<FaultKind, Effect>> = {
  'etcd-cut': { cutRequests: true, cutReplies: true },
  'etcd-cut-requests': { cutRequests: true },
  'etcd-cut-replies': { cutReplies: true },
  'etcd-refused': { storeRefused: true },
  'nats-cut': { natsCut: true },
  'nats-deaf': { natsDeaf: 1 },
  'nats-mute': { natsMute: 1 },
  'lost-replies': { loseReply: 0.3 },
  'late-requests': { executeLate: 0.3 },
  'doubled-requests': { doubled: 0.5 },
  'frozen-reads': { frozenReads: true },
  'serve-etcd-cut': { cutRequests: true, cutReplies: true },
  'serve-etcd-cut-replies': { cutReplies: true },
  'serve-nats-cut': { natsCut: true },
  'serve-lost-replies': { loseReply: 0.4 },
  'serve-late-requests': { executeLate: 0.4 },
  'observer-cut': { natsCut: true },
  'observer-slow': { natsDelayMs: 2_000, natsDeaf: 0.1 },
}

export function strikeMember(world: World, strike: Strike): Hit | null {
  const { fault, id } = strike
  const process = chooseMember(world, strike)
  if (process === null) return null
  process.lastFaultMs = world.nowMs
  const hit = { member: process.member, on: process.name }
  const connection = CONNECTIONS[fault.kind]
  if (connection !== undefined) return { ...hit, end: sufferUntil(process, id, connection) }
  const end = memberFault(world, strike, process)
  return end === undefined ? null : { ...hit, end }
}

/** How it ends; null: it was a moment; undefined: it cannot be had now. */
function memberFault(
  world: World,
  { fault, id }: Strike,
  process: MemberProcess,
): (() => void) | null | undefined {
  switch (fault.kind) {
    case 'kill':
      process.hold(id)
      return () => process.release(id)
    case 'long-pause':
    case 'short-pause':
      process.pause(id)
      return () => process.resume(id)
    case 'stall':
      process.stall(fault.forMs)
      return () => {}
    case 'wall-jump':
      return jumpWall(process, fault.other % 2 === 0 ? HOUR_MS : -HOUR_MS)
    case 'leave':
      if (process.worker === null) return undefined
      process.holdBack(id)
      process.stop()
      return () => process.release(id)
    case 'flap':
      return flap(world, process, id)
    case 'duplicate-name':
      return twin(world, process, id)
    case 'wedge':
      process.wedge(id)
      return () => process.unwedge(id)
    case 'acquire-fails':
      process.failAcquires(id, true)
      return () => process.failAcquires(id, false)
    case 'silent-watch':
      process.silenceWatches()
      return null
    case 'lease-revoked': {
      const session = world.truth.sessions.get(process.member)
      if (session === undefined) return undefined
      world.isHonest = false
      world.base.etcd.revokeLease(session as never)
      return null
    }
    default:
      throw new Error(`no fault of a member: ${fault.kind}`)
  }
}

export function strikeServe(world: World, { fault, id, partition }: Strike): Hit | null {
  // Aimed at a moment of a move, it hits who made the move.
  const leader = world.serves.find((serve) => serve.isLeader)
  const chosen = world.serves[fault.target % world.serves.length]
  const process = partition !== null && leader !== undefined ? leader : chosen
  if (process === undefined) return null
  return { on: process.name, end: processFault(world, fault.kind, process, id) }
}

export function strikeObserver(world: World, { fault, id }: Strike): Hit | null {
  const process = world.observers[fault.target % Math.max(1, world.observers.length)]
  if (process === undefined) return null
  return { on: process.name, end: processFault(world, fault.kind, process, id) }
}

function processFault(
  world: World,
  kind: FaultKind,
  process: WorldProcess,
  id: number,
): () => void {
  process.lastFaultMs = world.nowMs
  const connection = CONNECTIONS[kind]
  if (connection !== undefined) return sufferUntil(process, id, connection)
  switch (kind) {
    case 'serve-kill':
      process.hold(id)
      return () => process.release(id)
    case 'serve-pause':
    case 'observer-pause':
      process.pause(id)
      return () => process.resume(id)
    default:
      throw new Error(`no fault of a process: ${kind}`)
  }
}

/** The aimed partition's owner, or the one that the plan names. */
function chooseMember(world: World, { fault, partition }: Strike): MemberProcess | null {
  const record = partition === null ? undefined : world.truth.records.get(partition)?.record
  if (record !== undefined && record.phase !== 'vacant') {
    const owner = world.members.find(({ member }) => member === record.owner.member)
    if (owner !== undefined) return owner
  }
  return world.members[fault.target % world.members.length] ?? null
}

function sufferUntil(process: WorldProcess, id: number, effect: Effect): () => void {
  process.suffer(id, effect)
  return () => process.recover(id)
}

function jumpWall(process: WorldProcess, byMs: number): () => void {
  const { life } = process
  life?.clock.jumpWall(byMs)
  return () => {
    if (life?.isOver === false) life.clock.jumpWall(-byMs)
  }
}

/** Killed and started again and again. */
function flap(world: World, process: MemberProcess, id: number): () => void {
  const { clock, random } = world.base
  let isOver = false
  const turn = (up: boolean) => {
    if (isOver) return
    if (up) process.release(id)
    else process.hold(id)
    clock.schedule(400 + random.integer(2_000), () => turn(!up))
  }
  turn(false)
  return () => {
    isOver = true
    process.release(id)
  }
}

/** Another process of the same member name, for a while. */
function twin(world: World, process: MemberProcess, id: number): () => void {
  const twin = world.addMember(`${process.member}-twin${id}`, process.member)
  twin.start()
  return () => {
    twin.hold(id)
    world.members.splice(world.members.indexOf(twin), 1)
  }
}
