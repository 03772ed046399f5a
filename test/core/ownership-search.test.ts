/**
 * Plan: breadth-first search over two members and one partition running the production machine
 * (`ownership-world.ts`), to the end of each configuration. No reachable moment breaks a promise; from
 * each one a healing partition gets back to an owner that serves. Mutants show that the search can fail.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Commit, StoredRecord } from '../../src/core/commit.ts'
import type { OperationId } from '../../src/core/ids.ts'
import type { Grant, OwnershipEvent, Seat } from '../../src/core/ownership-state.ts'
import type { PartitionRecord } from '../../src/core/partition-record.ts'
import type { Budget, Life, Request, Rules, World } from './ownership-world.ts'
import {
  Broken,
  checkWorld,
  isAlive,
  movesOf,
  ownerOf,
  servedWorld,
  standing,
  startWorld,
} from './ownership-world.ts'

const STATES_MAX = 150_000

const NOTHING: Budget = {
  lost: 0,
  late: 0,
  work: 0,
  expiries: 0,
  sessions: 0,
  revokes: 0,
  rewrites: 0,
  forces: 0,
  overdue: 0,
  raises: 0,
  restores: 0,
}

// The text of a world: equal texts behave equally. `#n` is an operation id.

const texts = new WeakMap<PartitionRecord, string>()
function recordText(record: PartitionRecord): string {
  let text = texts.get(record)
  if (text === undefined) {
    const owner = record.phase === 'vacant' ? '-' : record.owner.session
    const move = record.phase === 'revoking' ? `>${record.move.to}${record.move.rewrites}` : ''
    text = `${record.phase}${record.incarnation}.${record.generation}${owner}${move}#${record.operation} `
    texts.set(record, text)
  }
  return text
}
const storedText = (stored: StoredRecord | null) =>
  stored === null ? '' : recordText(stored.record)
const grantText = (grant: Grant | null) =>
  grant === null ? '' : `${grant.incarnation}.${grant.generation}${grant.owner.session}`
const commitText = (commit: Commit) =>
  `${storedText(standing(commit.expected))}=>${recordText(commit.next)}:${commit.requires.length}`

function seatText({ now, highest, asked }: Seat): string {
  const parts: string[] = [now.status, `${highest.incarnation}.${highest.generation}?#${asked}`]
  if ('grant' in now) parts.push(grantText(now.grant))
  if ('stored' in now) parts.push(storedText(now.stored))
  if ('commit' in now) parts.push(commitText(now.commit))
  if ('trust' in now) parts.push(now.trust)
  if ('ending' in now) parts.push(now.ending)
  if ('giveUp' in now) parts.push(String(now.giveUp.to))
  if ('overdueAtMs' in now) parts.push(String(now.overdueAtMs))
  return parts.join()
}

function eventText(event: OwnershipEvent): string {
  switch (event.type) {
    case 'confirmed':
      return `confirmed#${event.id} ${storedText(event.stored)}`
    case 'refused':
      return `refused#${event.operation} ${storedText(event.stands)}`
    case 'committed':
    case 'refused-all':
      return `${event.type}#${event.operation}`
    default:
      return event.type
  }
}

const requestText = (request: Request) =>
  request.type === 'confirm'
    ? `?#${request.id} `
    : `${request.type}${commitText(request.commit)}${grantText(request.from)}`

const lifeTexts = new WeakMap<Life, string>()
function lifeText(life: Life): string {
  let text = lifeTexts.get(life)
  if (text === undefined) {
    text = describeLife(life)
    lifeTexts.set(life, text)
  }
  return text
}

function describeLife(life: Life): string {
  return [
    seatText(life.seat),
    life.session,
    grantText(life.working),
    life.requests.map(requestText).sort().join('&'),
    life.replies.map(eventText).sort().join('&'),
    storedText(life.map),
    life.unseen.map(storedText).join('&'),
    life.incarnation,
  ].join(';')
}

function worldText(world: World): string {
  const { stored, incarnation, alive, lives, left, backup, restored } = world
  return [
    storedText(stored),
    incarnation,
    alive.join(),
    lifeText(lives[0]),
    lifeText(lives[1]),
    Object.values(left).join(''),
    backup === null ? '' : `${storedText(backup.stored)},${backup.incarnation},${backup.alive}`,
    restored,
  ].join('|')
}

/** Operation ids are renamed in the order of their appearance: which ones they are means nothing. */
function keyOf(text: string): string {
  const names = new Map<string, number>()
  return text.replace(/#\d+/g, (id) => {
    const name = names.get(id) ?? names.size
    names.set(id, name)
    return `#${name}`
  })
}

/** The smallest id that occurs nowhere: as good as one that never was. */
function freshOperation(text: string): OperationId {
  const used = new Set(text.match(/#\d+/g))
  let id = 0
  while (used.has(`#${id}`)) id += 1
  return String(id) as OperationId
}

/** Someone alive serves under the record, or nobody is left who could. */
function isGood(world: World): boolean {
  if (world.alive[0] === 0 && world.alive[1] === 0 && world.left.sessions === 0) return true
  const { stored } = world
  if (stored === null || stored.record.phase === 'vacant') return false
  if (stored.record.phase === 'halted') return world.left.raises === 0
  const { owner, incarnation } = stored.record
  if (!isAlive(world, owner) || incarnation !== world.incarnation) return false
  return ([0, 1] as const).some((index) => {
    const { seat, session } = world.lives[index]
    return (
      seat.now.status === 'serving' &&
      seat.now.trust === 'sure' &&
      ownerOf(index, session).session === owner.session
    )
  })
}

type Search = { readonly states: number; readonly stuck: number; readonly sample: string }

/** @throws Broken with the shortest trace that leads to the violation */
function search(start: World, rules: Rules, statesMax: number): Search {
  const ids = new Map<string, number>([[keyOf(worldText(start)), 0]])
  const parents: number[] = [-1]
  const labels: string[] = ['start']
  const healedFrom: number[][] = [[]]
  const good: number[] = []
  let frontier: (readonly [number, World, string])[] = [[0, start, worldText(start)]]
  const trace = (id: number): string => {
    const steps: string[] = []
    for (let at = id; at >= 0; at = parents[at] as number) steps.unshift(labels[at] as string)
    return steps.join('\n  ')
  }
  for (let depth = 0; frontier.length > 0; depth += 1) {
    const next: (readonly [number, World, string])[] = []
    for (const [id, world, text] of frontier) {
      try {
        checkWorld(world, rules)
        if (isGood(world)) good.push(id)
        for (const move of movesOf(world, freshOperation(text), rules)) {
          const moved = worldText(move.next)
          const key = keyOf(moved)
          let to = ids.get(key)
          if (to === undefined) {
            to = parents.length
            if (to >= statesMax) throw new Error(`more than ${statesMax} states at depth ${depth}`)
            ids.set(key, to)
            parents.push(id)
            labels.push(move.label)
            healedFrom.push([])
            next.push([to, move.next, moved])
          }
          if (move.heals) (healedFrom[to] as number[]).push(id)
        }
      } catch (error) {
        if (!(error instanceof Broken)) throw error
        throw new Broken(`${error.message}\n  ${trace(id)}`)
      }
    }
    frontier = next
  }
  const reached = new Uint8Array(parents.length)
  const queue = [...good]
  for (const id of queue) reached[id] = 1
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    for (const from of healedFrom[id] as number[]) {
      if (reached[from] === 1) continue
      reached[from] = 1
      queue.push(from)
    }
  }
  const first = reached.indexOf(0)
  const stuck = reached.reduce((sum, flag) => sum + (1 - flag), 0)
  return { states: parents.length, stuck, sample: first < 0 ? '' : trace(first) }
}

function exhaust(
  name: string,
  from: (left: Budget) => World,
  budget: Partial<Budget>,
  rules: Omit<Rules, 'mutant'>,
): void {
  test(`ownership, ${name}, keeps its promises and is never stuck`, (t) => {
    const start = from({ ...NOTHING, ...budget })
    const found = search(start, { ...rules, mutant: 'none' }, STATES_MAX)
    t.diagnostic(`${found.states} states`)
    assert.equal(found.stuck, 0, `stuck in ${found.stuck} states, first:\n  ${found.sample}`)
  })
}

const UNFENCED = { fenced: false, honest: true }
const HOSTILE = { fenced: false, honest: false }
const FENCED = { fenced: true, honest: false }

exhaust('elected with lost replies', startWorld, { lost: 1, late: 1, expiries: 1 }, HOSTILE)
exhaust(
  'moved and retargeted',
  servedWorld,
  { revokes: 1, rewrites: 2, work: 1, late: 1 },
  UNFENCED,
)
exhaust(
  'moved with lost replies',
  servedWorld,
  { revokes: 1, rewrites: 1, lost: 1, late: 1 },
  UNFENCED,
)
exhaust('moved while sessions end', servedWorld, { revokes: 1, expiries: 1, sessions: 1 }, HOSTILE)
exhaust('moved twice', servedWorld, { revokes: 2, work: 1, late: 1 }, UNFENCED)
exhaust('forced', servedWorld, { revokes: 1, forces: 1, overdue: 1, work: 1, late: 1 }, FENCED)
exhaust('while the incarnation rises', servedWorld, { raises: 1, revokes: 1, lost: 1 }, UNFENCED)
exhaust('restored over a raise', servedWorld, { restores: 1, raises: 2 }, UNFENCED)
exhaust('restored over a move', servedWorld, { restores: 1, raises: 1, revokes: 1 }, UNFENCED)

function refute(
  mutant: Rules['mutant'],
  budget: Partial<Budget>,
  rules: Omit<Rules, 'mutant'>,
): void {
  test(`ownership search, without ${mutant}, finds the violation`, () => {
    const start = servedWorld({ ...NOTHING, ...budget })
    assert.throws(() => search(start, { ...rules, mutant }, STATES_MAX), Broken)
  })
}

refute('session-gone', {}, HOSTILE)
refute('grantee-alive', { expiries: 1, revokes: 1 }, HOSTILE)
refute('drain', { revokes: 1, work: 1 }, UNFENCED)
refute('memory', { revokes: 1 }, UNFENCED)
refute('compare', { revokes: 1, rewrites: 1 }, UNFENCED)
