/**
 * A small world for the breadth-first search: two members, one partition, the production machine, a
 * record in a store that checks what commits require, sessions that end, requests that land late or
 * whose replies are lost, maps that lag, a rebalancer and an operator. `moves` lists everything that can
 * happen next; what must never be true throws `Broken`.
 */
import type { Commit, Requirement, StoredRecord } from '../../src/core/commit.ts'
import { force, retarget, revoke } from '../../src/core/commit.ts'
import type { MemberName, OperationId, SessionId } from '../../src/core/ids.ts'
import { checkOwnershipStep } from '../../src/core/invariants.ts'
import { stepOwnership } from '../../src/core/ownership.ts'
import type {
  Grant,
  OwnershipContext,
  OwnershipEvent,
  Seat,
} from '../../src/core/ownership-state.ts'
import { isGrant, NEW_SEAT } from '../../src/core/ownership-state.ts'
import type { Owner, PendingMove } from '../../src/core/partition-record.ts'
import { recordOwner } from '../../src/core/partition-record.ts'
import { checkRecordTransition } from '../../src/core/record-invariants.ts'
import { comparePositions } from '../../src/core/token.ts'

export type Request =
  | { readonly type: 'commit'; readonly commit: Commit; readonly from: Grant | null }
  /** Its sender was told `unsettled`; it may still land, and nobody hears of it. */
  | { readonly type: 'limbo'; readonly commit: Commit; readonly from: Grant | null }
  | { readonly type: 'confirm'; readonly id: OperationId }

export type Life = {
  readonly seat: Seat
  /** Number of the session that the member believes in; 0: none. */
  readonly session: number
  /** The grant under which work is still running. */
  readonly working: Grant | null
  readonly requests: readonly Request[]
  readonly replies: readonly OwnershipEvent[]
  readonly map: StoredRecord | null
  /** Changes that the map does not show yet. */
  readonly unseen: readonly (StoredRecord | null)[]
  readonly incarnation: number
}

export type Budget = {
  readonly lost: number
  /** Replies that overtake nothing and arrive at any later time. */
  readonly late: number
  readonly work: number
  readonly expiries: number
  readonly sessions: number
  readonly revokes: number
  readonly rewrites: number
  readonly forces: number
  readonly overdue: number
  readonly raises: number
  readonly restores: number
}

export type World = {
  readonly stored: StoredRecord | null
  readonly incarnation: number
  /** Per member the session that stands in the store; 0: none. */
  readonly alive: readonly [number, number]
  readonly lives: readonly [Life, Life]
  readonly left: Budget
  /** A backup, and whether the store ever went back to it. */
  readonly backup: Pick<World, 'stored' | 'incarnation' | 'alive'> | null
  readonly restored: boolean
}

export type Rules = {
  readonly fenced: boolean
  /** Sessions stand in the store until their member has stopped believing in them. */
  readonly honest: boolean
  /** For proving that the search can fail: which safeguard is left out. */
  readonly mutant: 'none' | 'session-gone' | 'grantee-alive' | 'drain' | 'memory' | 'compare'
}

export type Move = {
  readonly label: string
  /** Without faults, rebalancers or luck: what a partition that heals may count on. */
  readonly heals: boolean
  readonly next: World
}

/** A map that lags behind shows all that it missed as one change. */
const UNSEEN_MAX = 1

export class Broken extends Error {}

const NAMES = ['a', 'b'] as const
type Index = 0 | 1
const other = (index: Index): Index => (index === 0 ? 1 : 0)

export function ownerOf(index: Index, session: number): Owner {
  const id = `${index + 1}${String(session).padStart(15, '0')}`
  return { member: NAMES[index] as string as MemberName, session: id as SessionId }
}

const interned = new Map<string, StoredRecord>()
export function intern(commit: Commit): StoredRecord {
  let stored = interned.get(commit.value)
  if (stored === undefined) {
    stored = { record: commit.next, raw: commit.value }
    interned.set(commit.value, stored)
  }
  return stored
}

export function standing(raw: string | null): StoredRecord | null {
  return raw === null ? null : (interned.get(raw) ?? null)
}

export function startWorld(left: Budget): World {
  const life: Life = {
    seat: NEW_SEAT,
    session: 1,
    working: null,
    requests: [],
    replies: [],
    map: null,
    unseen: [],
    incarnation: 1,
  }
  return {
    stored: null,
    incarnation: 1,
    alive: [1, 1],
    lives: [life, life],
    left,
    backup: null,
    restored: false,
  }
}

/** The first member serves, and both maps show it. */
export function servedWorld(left: Budget): World {
  const rules: Rules = { fenced: false, honest: true, mutant: 'none' }
  let world = startWorld(left)
  const labels = ['campaigns', '→ committed', 'acquired', 'map shows', 'map shows']
  for (const [at, label] of labels.entries()) {
    const move = movesOf(world, String(at) as OperationId, rules).find((one) =>
      one.label.includes(label),
    )
    if (move === undefined) throw new Error(`no move "${label}"`)
    world = move.next
  }
  return world
}

/** @param operation an id that occurs nowhere in the world */
export function movesOf(world: World, operation: OperationId, rules: Rules): readonly Move[] {
  const moves: Move[] = []
  for (const index of [0, 1] as const) {
    requestMoves(world, index, operation, rules, moves)
    memberMoves(world, index, operation, rules, moves)
    sessionMoves(world, index, operation, rules, moves)
  }
  operatorMoves(world, operation, rules, moves)
  return moves
}

export function spend(world: World, what: keyof Budget): World {
  return { ...world, left: { ...world.left, [what]: world.left[what] - 1 } }
}

function withLife(world: World, index: Index, changed: Partial<Life>): World {
  const life = { ...world.lives[index], ...changed }
  return { ...world, lives: index === 0 ? [life, world.lives[1]] : [world.lives[0], life] }
}

/** Lets the machine take one step and performs what it asks for. */
function feed(
  world: World,
  index: Index,
  event: OwnershipEvent,
  operation: OperationId,
  rules: Rules,
): World {
  const life = world.lives[index]
  const context = contextOf(world, index, operation, rules)
  const seat = rules.mutant === 'memory' ? { ...life.seat, highest: NEW_SEAT.highest } : life.seat
  const step = stepOwnership(seat, event, context, event.type === 'wake' ? 1 : 0)
  const broken = checkOwnershipStep(seat, event, context, step)
  if (broken.length > 0) throw new Broken(`${event.type}: ${JSON.stringify(broken)}`)
  const requests = [...life.requests]
  for (const action of step.actions) {
    if (action.type === 'confirm') requests.push({ type: 'confirm', id: action.id })
    if (action.type === 'commit') {
      const { now } = step.seat
      const from = now.status === 'handing-over' ? now.grant : null
      requests.push({ type: 'commit', commit: action.commit, from })
    }
  }
  const { now } = step.seat
  // An answer that no longer counts may as well never come (unit tests show that it is ignored).
  const { asked } = step.seat
  const counting = requests.filter((one) => one.type !== 'confirm' || one.id === asked)
  const still = now.status === 'handing-over' ? { ...now, drainMs: 0, sentAtMs: 0 } : now
  return withLife(world, index, { seat: { ...step.seat, now: still }, requests: counting })
}

function contextOf(
  world: World,
  index: Index,
  operation: OperationId,
  rules: Rules,
): OwnershipContext {
  const { session, incarnation } = world.lives[index]
  const me = session === 0 ? null : ownerOf(index, session)
  return {
    partition: 0,
    me,
    incarnation,
    fenced: rules.fenced,
    drainDeadlineMs: 1,
    drainPolicy: rules.fenced ? 'fence' : 'wait',
    acquireDeadlineMs: 1,
    // The worst of maps: a member that died is still taken for alive.
    granteeOf: (member) => {
      const to: Index = member === 'a' ? 0 : 1
      if (to === index) return me
      const { alive, lives } = world
      const believed = alive[to] || lives[to].session || 1
      return ownerOf(to, believed)
    },
    stamp: { operation, atMs: 0 },
  }
}

/** The store executes a commit: atomically, or not at all. */
function execute(
  world: World,
  commit: Commit,
  from: Grant | null,
  rules: Rules,
): { readonly world: World; readonly done: boolean; readonly required: boolean } {
  const required = commit.requires.every((one) => holds(world, one, rules))
  const isSame = rules.mutant === 'compare' || (world.stored?.raw ?? null) === commit.expected
  if (!required || !isSame) return { world, done: false, required }
  const stored = intern(commit)
  checkChange(world, stored, from, rules)
  return { world: changed(world, stored), done: true, required }
}

function changed(world: World, stored: StoredRecord | null): World {
  const [a, b] = world.lives
  return {
    ...world,
    stored,
    lives: [
      { ...a, unseen: [...a.unseen, stored].slice(-UNSEEN_MAX) },
      { ...b, unseen: [...b.unseen, stored].slice(-UNSEEN_MAX) },
    ],
  }
}

function holds(world: World, one: Requirement, rules: Rules): boolean {
  switch (one.type) {
    case 'session-alive':
      return rules.mutant === 'grantee-alive' || isAlive(world, one)
    case 'session-gone':
      return rules.mutant === 'session-gone' || !isAlive(world, one)
    case 'incarnation':
      return one.incarnation === world.incarnation
    case 'rebalancer':
    case 'not-cordoned':
    case 'group-enabled':
    case 'partition-enabled':
      return true
    default:
      return one satisfies never
  }
}

export function isAlive(world: World, owner: Owner): boolean {
  return ([0, 1] as const).some((index) => {
    const session = world.alive[index]
    return session !== 0 && ownerOf(index, session).session === owner.session
  })
}

/** S1, S2, S4, S5 and "never granted to the dead", on what the store really holds. */
function checkChange(world: World, after: StoredRecord, from: Grant | null, rules: Rules): void {
  const before = world.stored
  const broken = checkRecordTransition(before?.record ?? null, after.record)
  if (broken.length > 0) throw new Broken(JSON.stringify(broken))
  const { record } = after
  if (record.phase === 'owned' && !isAlive(world, record.owner)) {
    throw new Broken('granted to the dead')
  }
  const last = recordOwner(before?.record ?? null)
  if (last === null || before === null) return
  const leaves = record.phase === 'owned' || record.phase === 'vacant'
  if (!leaves || rules.fenced || !isAlive(world, last)) return
  const isOwn = from !== null && isGrant(before, from)
  if (!isOwn) throw new Broken('S4: taken from a living owner that did not give it up')
  for (const life of world.lives) {
    if (isOpen(life) && isGrant(before, openGrant(life))) throw new Broken('S5: gate open')
    if (life.working !== null && isGrant(before, life.working)) throw new Broken('S5: work runs')
  }
}

function isOpen({ seat, session }: Life): boolean {
  return session !== 0 && seat.now.status === 'serving' && seat.now.trust === 'sure'
}

function openGrant({ seat }: Life): Grant {
  if (seat.now.status !== 'serving') throw new Broken('not serving')
  return seat.now.grant
}

/** What no moment may show. */
export function checkWorld(world: World, rules: Rules): void {
  const [a, b] = world.lives
  if (isOpen(a) && isOpen(b)) {
    if (rules.honest && !rules.fenced && !world.restored) throw new Broken('S10: both gates open')
    const isSame = comparePositions(openGrant(a), openGrant(b)) === 0
    if (isSame && !world.restored) throw new Broken('S2: two sessions work under one position')
  }
  for (const [index, life] of world.lives.entries()) {
    const isCertain = !rules.fenced && !world.restored && world.alive[index] === life.session
    if (isCertain && isOpen(life) && !isGrant(world.stored, openGrant(life))) {
      throw new Broken('S5: a gate is open for a grant that the record does not name')
    }
  }
}

function without<T>(list: readonly T[], index: number): readonly T[] {
  return list.filter((_, at) => at !== index)
}

function requestMoves(
  world: World,
  index: Index,
  operation: OperationId,
  rules: Rules,
  moves: Move[],
): void {
  const life = world.lives[index]
  const name = NAMES[index]
  for (const [at, request] of life.requests.entries()) {
    const sent = withLife(world, index, { requests: without(life.requests, at) })
    if (request.type === 'confirm') {
      const reply: OwnershipEvent = { type: 'confirmed', id: request.id, stored: world.stored }
      answer(sent, index, reply, operation, rules, `${name}: store answers confirm`, moves)
      continue
    }
    const { commit, from } = request
    const { next: record } = commit
    const label = `${name}: ${record.phase} ${record.incarnation}.${record.generation}`
    const result = execute(sent, commit, from, rules)
    if (request.type === 'limbo') {
      if (result.done) moves.push({ label: `${label} lands late`, heals: true, next: result.world })
      moves.push({ label: `${label} never lands`, heals: true, next: sent })
      continue
    }
    for (const reply of repliesTo(commit, result, world)) {
      answer(result.world, index, reply, operation, rules, `${label} → ${reply.type}`, moves)
    }
    if (world.left.lost > 0) {
      const limbo: Request = { ...request, type: 'limbo' }
      const lost = withLife(sent, index, { requests: [...without(life.requests, at), limbo] })
      const event = { type: 'unsettled', operation: record.operation } as const
      const next = feed(spend(lost, 'lost'), index, event, operation, rules)
      moves.push({ label: `${label} times out`, heals: false, next })
    }
  }
  for (const [at, reply] of life.replies.entries()) {
    const rest = withLife(world, index, { replies: without(life.replies, at) })
    const next = feed(rest, index, reply, operation, rules)
    moves.push({ label: `${name}: hears ${reply.type}`, heals: true, next })
  }
}

/** A reply comes at once, or at any later time. */
function answer(
  world: World,
  index: Index,
  reply: OwnershipEvent,
  operation: OperationId,
  rules: Rules,
  label: string,
  moves: Move[],
): void {
  moves.push({ label, heals: true, next: feed(world, index, reply, operation, rules) })
  if (world.left.late === 0) return
  const { replies } = world.lives[index]
  const next = withLife(spend(world, 'late'), index, { replies: [...replies, reply] })
  moves.push({ label: `${label}, on its way`, heals: false, next })
}

/** A failed requirement is told for the record or for the whole batch, as the batch happens to be. */
function repliesTo(
  commit: Commit,
  result: { readonly done: boolean; readonly required: boolean },
  world: World,
): readonly OwnershipEvent[] {
  const { operation } = commit.next
  if (result.done) return [{ type: 'committed', operation }]
  const refused = { type: 'refused', operation, stands: world.stored } as const
  return result.required ? [refused] : [refused, { type: 'refused-all', operation }]
}

function memberMoves(
  world: World,
  index: Index,
  operation: OperationId,
  rules: Rules,
  moves: Move[],
): void {
  const life = world.lives[index]
  const { seat, unseen, map, working } = life
  const { now } = seat
  const push = (what: string, heals: boolean, next: World) =>
    moves.push({ label: `${NAMES[index]}: ${what}`, heals, next })
  const give = (event: OwnershipEvent, from: World = world) =>
    feed(from, index, event, operation, rules)

  for (const skip of unseen.length > 1 ? [0, unseen.length - 1] : unseen.length === 1 ? [0] : []) {
    const stored = unseen[skip] ?? null
    // After a restore the map is a fresh list, whatever it showed before.
    const incarnation = world.restored
      ? world.incarnation
      : Math.max(life.incarnation, stored?.record.incarnation ?? 0)
    const shown = withLife(world, index, {
      map: stored,
      unseen: unseen.slice(skip + 1),
      incarnation,
    })
    push(`map shows ${stored?.record.phase}`, true, give({ type: 'seen', stored }, shown))
  }
  if (life.incarnation !== world.incarnation) {
    const known = withLife(world, index, { incarnation: world.incarnation })
    push('incarnation seen', true, give({ type: 'seen', stored: map }, known))
  }
  const owner = recordOwner(map?.record ?? null)
  const isVacant = owner === null || !isAlive(world, owner)
  const isBold = rules.mutant === 'session-gone'
  if (now.status === 'absent' && life.session !== 0 && (isVacant || isBold)) {
    const next = give({ type: 'campaign', stored: map })
    if (next.lives[index].seat !== seat) push('campaigns', true, next)
  }
  if (now.status === 'acquiring') {
    push('acquired', true, give({ type: 'acquired' }))
    if (world.left.overdue > 0) {
      push('acquire overdue', false, give({ type: 'wake' }, spend(world, 'overdue')))
    }
  }
  if (isOpen(life) && working === null && world.left.work > 0) {
    push('work begins', false, withLife(spend(world, 'work'), index, { working: openGrant(life) }))
  }
  if (working !== null) push('work ends', true, withLife(world, index, { working: null }))
  if (now.status === 'draining') {
    const busy = working !== null && comparePositions(working, now.grant) === 0
    if (!busy || rules.mutant === 'drain') push('drained', true, give({ type: 'drained' }))
    if (now.overdueAtMs !== null && world.left.overdue > 0) {
      push('drain overdue', false, give({ type: 'wake' }, spend(world, 'overdue')))
    }
  }
  if (now.status === 'serving' || now.status === 'acquiring' || now.status === 'draining') {
    const position = world.stored?.record ?? null
    const isNews = position !== null && comparePositions(position, now.grant) > 0
    if (isNews && seat.asked === null) {
      push('hears of a higher generation', true, give({ type: 'heard-higher', position }))
      if (rules.fenced) push('fenced off', true, give({ type: 'fence-ahead', highest: position }))
    }
  }
  if ((now.status === 'serving' || now.status === 'acquiring') && world.left.revokes > 0) {
    const giveUp = { to: NAMES[other(index)] as string as MemberName, reason: 'leave' } as const
    push('leaves', false, give({ type: 'give-up', giveUp }, spend(world, 'revokes')))
  }
}

function sessionMoves(
  world: World,
  index: Index,
  operation: OperationId,
  rules: Rules,
  moves: Move[],
): void {
  const life = world.lives[index]
  const stands = world.alive[index]
  const isDead = life.session !== 0 && stands !== life.session
  const gone = (from: World): World => ({
    ...from,
    alive: index === 0 ? [0, from.alive[1]] : [from.alive[0], 0],
  })
  const name = NAMES[index]
  if (life.session !== 0 && (isDead || world.left.expiries > 0)) {
    const paid = isDead ? world : spend(world, 'expiries')
    const ended = withLife(paid, index, { session: 0 })
    const next = feed(ended, index, { type: 'session-ended' }, operation, rules)
    moves.push({ label: `${name}: session ends here`, heals: isDead, next })
  }
  if (stands !== 0 && life.session !== stands) {
    moves.push({ label: `${name}: session ends in the store`, heals: true, next: gone(world) })
  } else if (stands !== 0 && !rules.honest && world.left.expiries > 0) {
    const next = gone(spend(world, 'expiries'))
    moves.push({ label: `${name}: store drops the live session`, heals: false, next })
  }
  if (life.session === 0 && stands === 0 && world.left.sessions > 0) {
    const session = 10 - world.left.sessions
    const opened = spend(withLife(world, index, { session }), 'sessions')
    const alive =
      index === 0 ? ([session, world.alive[1]] as const) : ([world.alive[0], session] as const)
    moves.push({ label: `${name}: opens a session`, heals: true, next: { ...opened, alive } })
  }
}

function operatorMoves(world: World, operation: OperationId, rules: Rules, moves: Move[]): void {
  const { stored, left } = world
  const stamp = { operation, atMs: 0 }
  const rebalancer = 'f'.repeat(16) as SessionId
  const write = (label: string, commit: Commit, cost: keyof Budget) => {
    const { world: next, done } = execute(spend(world, cost), commit, null, rules)
    if (done) moves.push({ label: `rebalancer: ${label}`, heals: false, next })
  }
  const record = stored?.record
  const targets = ['a', 'b', null] as readonly (MemberName | null)[]
  if (stored !== null && record?.phase === 'owned' && left.revokes > 0) {
    for (const to of targets) {
      if (to === record.owner.member) continue
      const move: PendingMove = { id: 'm', to, reason: 'balance', by: 'r', rewrites: 0, atMs: 0 }
      write(`revoke to ${to}`, revoke(0, { ...stored, record }, move, rebalancer, stamp), 'revokes')
    }
  }
  if (stored !== null && record?.phase === 'revoking' && left.rewrites > 0) {
    for (const to of targets) {
      if (to === record.move.to) continue
      write(
        `retarget to ${to}`,
        retarget(0, { ...stored, record }, to, rebalancer, stamp),
        'rewrites',
      )
    }
  }
  if (stored !== null && record?.phase === 'revoking' && left.forces > 0) {
    const to: Index = record.owner.member === 'a' ? 1 : 0
    const grantee = ownerOf(to, world.alive[to])
    const by = { type: 'rebalancer', session: rebalancer } as const
    write('force', force(0, stored, grantee, world.incarnation, by, stamp), 'forces')
  }
  // One raise is kept for after the restore, which the operator is told to follow up.
  if (left.raises > left.restores) {
    const known = world.lives.map(({ incarnation, seat }) =>
      Math.max(incarnation, seat.highest.incarnation),
    )
    const incarnation = Math.max(world.incarnation, ...known) + 1
    const heals = record?.phase === 'halted' || world.restored
    moves.push({
      label: 'operator: raise',
      heals,
      next: { ...spend(world, 'raises'), incarnation },
    })
  }
  if (left.restores > 0 && world.backup === null) {
    const { incarnation, alive } = world
    moves.push({
      label: 'backup',
      heals: false,
      next: { ...world, backup: { stored, incarnation, alive } },
    })
  }
  if (left.restores > 0 && world.backup !== null && world.backup.stored !== stored) {
    const { backup } = world
    const back = { ...spend(world, 'restores'), ...backup, backup: null, restored: true }
    moves.push({ label: 'restore', heals: false, next: changed(back, backup.stored) })
  }
}
