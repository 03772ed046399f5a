/**
 * The limit of planned moves: sixteen members and a planner, each a process, that move the same records
 * by raw gRPC. While it warms up, the planner's requests in flight are varied from wave to wave; the number
 * that was fastest stays.
 */
import { random } from '../composition/connections.ts'
import { DEFAULT_KEY_PREFIX } from '../core/keys.ts'
import type { BenchProcess } from './bench-processes.ts'
import type { BenchContext } from './bench-types.ts'
import { type MemberNotes, pausesOf } from './grant-notes.ts'
import { memberOf } from './member-names.ts'
import { MEMBERS } from './process-messages.ts'
import { createRawEtcd } from './raw-etcd.ts'
import type { Wire } from './raw-watch.ts'

export type MovesWave = {
  readonly movesPerSecond: number
  readonly pausesMs: readonly number[]
}

export type MovesLimit = {
  /** Tries each number of requests in flight in `TRIAL_WAVES` waves; call it first. */
  warmUp(): Promise<void>
  /** The next wave, with the number that was fastest. */
  wave(): Promise<MovesWave>
  describe(): string
  end(): Promise<void>
}

export type MovesOptions = {
  readonly partitions: number
  readonly members: number
  readonly itemMs: number
  readonly waves: number
  readonly wire: Wire
}

const IN_FLIGHT = [4, 16, 1, 8]
/** Once for nothing, and once to judge by. */
export const TRIAL_WAVES = IN_FLIGHT.length * 2
const WAVE_TIMEOUT_MS = 120_000

export async function openMovesLimit(
  context: BenchContext,
  options: MovesOptions,
): Promise<MovesLimit> {
  const { partitions, members, itemMs, waves, wire } = options
  const { servers, runId, processes: pool } = context
  const group = `${runId}-${wire}-moves-${partitions}`
  const prefix = `${DEFAULT_KEY_PREFIX}${group}/`
  const etcd = createRawEtcd(servers.etcd)
  const incarnation = { type: 'put', key: `${prefix}incarnation`, value: '1' } as const
  await etcd.send(etcd.prepare({ compare: [], success: [incarnation], failure: [] }))
  const all = await pool.take(members + 1)
  const workers = all.slice(0, members)
  const planner = all[members] as BenchProcess
  const common = {
    ...{ group, keyPrefix: DEFAULT_KEY_PREFIX, etcd: servers.etcd },
    ...{ partitions, itemMs, waves, wire },
    members: workers.map((_, index) => memberOf(index)),
    sessions: workers.map(() => random.sessionId()),
    planner: random.sessionId(),
  }
  const listen = (speaker: string) => Promise.all(all.map((one) => one.call('listen', { speaker })))
  await listen(group)
  await planner.call('movesBegin', { ...common, index: -1 })
  await Promise.all(workers.map((one, index) => one.call('movesBegin', { ...common, index })))
  await Promise.all(workers.map((one) => one.call('movesStart', { group })))
  const serving = (of: readonly BenchProcess[]) =>
    of.reduce((sum, one) => sum + one.held().serving, 0)
  const settled = (what: string, holds: () => boolean) =>
    pool.until(`limit: ${what}`, holds, WAVE_TIMEOUT_MS)
  await settled('first grants', () => serving(workers) === partitions)
  const givers = workers.slice(0, members / 2)
  const kept = workers.slice(members / 2).map((one) => one.held().serving)
  await listen(MEMBERS)
  let next = 0
  const wave = async (inFlight: number): Promise<MovesWave> => {
    await listen(group)
    await Promise.all(workers.map((one) => one.call('movesLoad', { group, on: true })))
    await loadStands(workers)
    const number = next++
    await planner.call('movesRevoke', { group, wave: number, inFlight })
    await settled('a wave', () => {
      const isAway = number % 2 === 0
      const left = serving(isAway ? givers : workers.slice(members / 2))
      const expected = isAway ? 0 : kept.reduce((sum, one) => sum + one, 0)
      return left === expected && serving(workers) === partitions
    })
    const notes = await Promise.all(workers.map((one) => one.call('movesNotes', { group })))
    await Promise.all(workers.map((one) => one.call('movesLoad', { group, on: false })))
    await listen(MEMBERS)
    return waveOf(notes)
  }
  let fastest = 1
  return {
    async warmUp() {
      for (const inFlight of IN_FLIGHT) await wave(inFlight)
      let highest = 0
      for (const inFlight of IN_FLIGHT) {
        const { movesPerSecond } = await wave(inFlight)
        if (movesPerSecond > highest) fastest = inFlight
        highest = Math.max(highest, movesPerSecond)
      }
    },
    wave: () => wave(fastest),
    describe: () => `planner with ${fastest} requests in flight`,
    async end() {
      await Promise.all(all.map((one) => one.call('movesEnd', { group })))
      await etcd.clear(prefix, servers.embedded)
      etcd.close()
    },
  }
}

/** Resolves when every process has begun items, so that each partition has one in flight. */
export async function loadStands(workers: readonly BenchProcess[]): Promise<void> {
  // One answer comes after the items that the load's beginning admitted in the same turn.
  await Promise.all(workers.map((one) => one.call('ping', null)))
}

/** Moves per second from the first revoke seen to the last partition served, and the pauses. */
export function waveOf(notes: readonly MemberNotes[]): MovesWave {
  const began = notes.map((note) => note.firstDrainingMs).filter((ms) => ms > 0)
  const pausesMs = pausesOf(notes.flatMap(({ grants }) => grants))
  const tookMs = Math.max(...notes.map((note) => note.lastServingMs)) - Math.min(...began)
  return { movesPerSecond: (pausesMs.length / tookMs) * 1000, pausesMs }
}
