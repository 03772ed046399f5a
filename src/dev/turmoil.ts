/**
 * Trouble for the demo under load: moves all the time, workers killed and paused beyond their TTL. What
 * is done, and when, is logged here; the report counts from this log.
 *
 * Kills and pauses come in a cycle of 20 s, one worker at a time but for the end of a pause, so that
 * somebody lives at every moment. Which worker and which partition is drawn from the seed.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { machineMs } from './machine-time.ts'
import type { TurmoilLine } from './report.ts'
import type { ServerProcess } from './servers-process.ts'

export type TurmoilOptions = {
  readonly workers: ReadonlyMap<string, ServerProcess>
  readonly partitions: number
  readonly seed: number
  readonly ttlMs: number
  /** `serve`'s URL of the group. */
  readonly groupUrl: string
  /** No new trouble from here on; what is under way is brought to its end. */
  readonly signal: AbortSignal
  /** Nothing is waited for any more: every worker runs or is down, at once. */
  readonly cancelled: AbortSignal
  /** Tells a person what is being done. */
  readonly say: (line: string) => void
}

const CYCLE_MS = 20_000
const MOVE_EVERY_MS = 250
const MOVES_AT_ONCE = 3
const RESTART_AFTER_MS = 800
const REPLACED_TIMEOUT_MS = 15_000
const SEAL_MS = 500

/** At this moment of a cycle: what is done. */
const CYCLE = [
  { atMs: 2500, type: 'kill' },
  { atMs: 5500, type: 'pause' },
  { atMs: 11_000, type: 'kill' },
  { atMs: 13_500, type: 'pause' },
] as const

/** Makes trouble until the signal; resolves when every worker runs again, unless cancelled. */
export async function makeTurmoil(options: TurmoilOptions): Promise<readonly TurmoilLine[]> {
  const log: TurmoilLine[] = []
  const random = seededFraction(options.seed)
  const away = new Set<string>()
  await Promise.all([moveAround(options, random, away), breakWorkers(options, random, away, log)])
  return log
}

async function breakWorkers(
  options: TurmoilOptions,
  random: () => number,
  away: Set<string>,
  log: TurmoilLine[],
): Promise<void> {
  const { signal, workers } = options
  const startMs = machineMs()
  const underWay: Promise<void>[] = []
  for (let cycle = 0; !signal.aborted; cycle += 1) {
    for (const step of CYCLE) {
      const waitMs = startMs + cycle * CYCLE_MS + step.atMs - machineMs()
      await pause(waitMs, signal)
      if (signal.aborted) break
      const present = await busyWorkers(options, away)
      const name = present[Math.floor(random() * present.length)]
      const worker = name === undefined ? undefined : workers.get(name)
      if (name === undefined || worker === undefined || workers.size - away.size < 2) continue
      away.add(name)
      const broken = step.type === 'kill' ? killOne : pauseOne
      underWay.push(broken(name, worker, options, log).finally(() => away.delete(name)))
    }
    await pause(startMs + (cycle + 1) * CYCLE_MS - machineMs(), signal)
  }
  await Promise.all(underWay)
}

async function killOne(
  name: string,
  worker: ServerProcess,
  options: TurmoilOptions,
  log: TurmoilLine[],
): Promise<void> {
  options.say(`kill   ${name}`)
  log.push({ type: 'kill', member: name, atMs: machineMs() })
  const before = await sessionOf(name, options)
  await worker.kill()
  await pause(RESTART_AFTER_MS, options.cancelled)
  if (options.cancelled.aborted) return
  await worker.restart()
  options.say(`start  ${name} again`)
  // Until its old session has run out the map shows it as owner of what nobody works on.
  const end = machineMs() + REPLACED_TIMEOUT_MS
  while (machineMs() < end && !options.cancelled.aborted) {
    const session = await sessionOf(name, options)
    if (session !== null && session !== before) return
    await pause(100, options.cancelled)
  }
}

async function pauseOne(
  name: string,
  worker: ServerProcess,
  options: TurmoilOptions,
  log: TurmoilLine[],
): Promise<void> {
  const atMs = machineMs()
  options.say(`pause  ${name} beyond its TTL`)
  const held = await heldBy(name, options)
  worker.pause()
  await pause(options.ttlMs, options.cancelled)
  await untilReplaced(held, options)
  // The new owners seal before they serve; a late write must come after that to be refused.
  await pause(SEAL_MS, options.cancelled)
  worker.resume()
  const forMs = machineMs() - atMs
  log.push({ type: 'pause', member: name, atMs, forMs, beyondTtl: forMs > options.ttlMs })
  options.say(`resume ${name}: its late writes meet the fence`)
}

/** Workers that hold a fair share: trouble for one that holds nothing would show nothing. */
async function busyWorkers(
  { groupUrl, workers, partitions }: TurmoilOptions,
  away: ReadonlySet<string>,
): Promise<readonly string[]> {
  const reply = await fetch(`${groupUrl}/members`).catch(() => null)
  if (reply?.ok !== true) return []
  const { members } = (await reply.json()) as { members: { member: string; owned: number }[] }
  const least = partitions / workers.size / 2
  return members
    .filter(({ member, owned }) => workers.has(member) && !away.has(member) && owned >= least)
    .map(({ member }) => member)
    .sort()
}

async function sessionOf(name: string, { groupUrl }: TurmoilOptions): Promise<string | null> {
  const reply = await fetch(`${groupUrl}/members`).catch(() => null)
  if (reply?.ok !== true) return null
  const { members } = (await reply.json()) as { members: { member: string; session: string }[] }
  return members.find(({ member }) => member === name)?.session ?? null
}

type Held = {
  readonly partition: number
  readonly generation: number
  readonly owner: { readonly member: string } | null
  readonly move: object | null
}

async function heldBy(name: string | null, { groupUrl }: TurmoilOptions): Promise<readonly Held[]> {
  const filter = name === null ? '' : `&owner=${name}`
  const reply = await fetch(`${groupUrl}/partitions?limit=1000${filter}`).catch(() => null)
  return reply?.ok === true ? ((await reply.json()) as { partitions: Held[] }).partitions : []
}

/** Until each partition that it held is served at a later generation. */
async function untilReplaced(held: readonly Held[], options: TurmoilOptions): Promise<void> {
  const end = machineMs() + REPLACED_TIMEOUT_MS
  while (machineMs() < end && !options.cancelled.aborted) {
    await pause(100, options.cancelled)
    const now = new Map((await heldBy(null, options)).map((view) => [view.partition, view]))
    const isReplaced = ({ partition, generation }: Held) => {
      const view = now.get(partition)
      return view !== undefined && view.generation > generation
    }
    const servedLater = held.filter(isReplaced)
    if (servedLater.length === held.length && now.size > 0) return
  }
}

/** Moves partitions of workers that are there to others that are there. */
async function moveAround(
  options: TurmoilOptions,
  random: () => number,
  away: ReadonlySet<string>,
): Promise<void> {
  const { workers, groupUrl, signal } = options
  while (!signal.aborted) {
    const present = [...workers.keys()].filter((name) => !away.has(name))
    const movable = (await heldBy(null, options)).filter(
      ({ owner, move }) => owner !== null && move === null && present.includes(owner.member),
    )
    const moves = Array.from({ length: MOVES_AT_ONCE }, () => {
      const view = movable[Math.floor(random() * movable.length)]
      const others = present.filter((name) => name !== view?.owner?.member)
      const to = others[Math.floor(random() * others.length)]
      if (view === undefined || to === undefined) return Promise.resolve(undefined)
      // A refusal (it moves already, the member just left) is part of the game.
      return fetch(`${groupUrl}/partitions/${view.partition}/move`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ to, reason: 'demo' }),
      }).then(
        (reply) => reply.arrayBuffer(),
        () => undefined,
      )
    })
    await Promise.all(moves)
    await pause(MOVE_EVERY_MS, signal)
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0) return
  await delay(ms, undefined, { signal }).catch(() => {})
}

/** A small generator (mulberry32) so that a seed names a run. */
function seededFraction(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
