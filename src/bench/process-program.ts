/**
 * The program of one process of the benchmark: answers the calls that its parent sends (`ProcessCalls`)
 * and ends when the parent does.
 */

import type { NatsOptions } from '../nats/nats-link.ts'
import type { BareArgument, BareHttp } from './bare-http.ts'
import type { measureGate } from './gate-process.ts'
import { loadHttp } from './http-load.ts'
import { type MapArgument, MapFollowers, type MapSource, openMapSource } from './map-process.ts'
import { type JoinArgument, MemberProcess } from './member-process.ts'
import { type FromProcess, MEMBERS, type ToProcess } from './process-messages.ts'
import type { FenceArgument, RawFences } from './raw-fences.ts'
import { type MovesArgument, RawMoves } from './raw-moves.ts'
import { NUMBER_BYTES, RawNats } from './raw-nats.ts'
import { type RawPrepareArgument, RawProcess } from './raw-process.ts'
import { type LookupArgument, RawLookup } from './raw-ring.ts'

const say = (message: FromProcess): void => {
  // The parent may be gone, and this process ends then.
  if (process.connected) process.send?.(message, undefined, {}, () => {})
}
/** Whoever works at the moment says what it holds: Tenure's members and the limits never do at once. */
let speaker = MEMBERS
const members = new MemberProcess((held) => {
  if (speaker === MEMBERS) say({ type: 'held', held })
})
const raw = new RawProcess()
const moves = new Map<string, RawMoves>()
let bare: BareHttp | null = null
let lookup: RawLookup | null = null
let source: MapSource | null = null
const followers = new MapFollowers()
let nats: RawNats | null = null
let readers: RawNats | null = null
let fences: RawFences | null = null
const opened = <T>(one: T | null | undefined): T => {
  if (one === null || one === undefined) throw new Error('open first')
  return one
}
type OfGroup = { readonly group: string }

const calls = {
  ping: async (_: null) => process.pid,
  join: (argument: JoinArgument) => members.join(argument),
  notes: async ({ reset }: { readonly reset: boolean }) => members.notes(reset),
  leave: (argument: { readonly members: readonly string[] | null; readonly force: boolean }) =>
    members.leave(argument.members, argument.force),
  usage: async (_: null) => members.usage(),
  rawPrepare: (argument: RawPrepareArgument) => raw.prepare(argument),
  rawGrant: ({ inFlight }: { readonly inFlight: number }) => raw.grant(inFlight),
  rawCounted: async (_: null) => raw.counted(),
  rawEnd: (_: null) => raw.end(),
  load: async ({ on }: { readonly on: boolean }) => members.load({ on }),
  listen: async (to: { readonly speaker: string }) => {
    speaker = to.speaker
    if (speaker === MEMBERS) members.say()
    else moves.get(speaker)?.say()
  },
  movesBegin: async (argument: MovesArgument) => {
    const { group } = argument
    const begun = new RawMoves(argument, (held) => {
      if (speaker === group) say({ type: 'held', held })
    })
    moves.set(group, begun)
    await begun.begin()
  },
  movesStart: async ({ group }: OfGroup) => opened(moves.get(group)).start(),
  movesLoad: async ({ group, on }: OfGroup & { readonly on: boolean }) =>
    opened(moves.get(group)).load({ on }),
  movesRevoke: (what: OfGroup & { readonly wave: number; readonly inFlight: number }) =>
    opened(moves.get(what.group)).revoke(what.wave, what.inFlight),
  movesNotes: async ({ group }: OfGroup) => opened(moves.get(group)).notes(),
  movesEnd: async ({ group }: OfGroup) => {
    await opened(moves.get(group)).end()
    moves.delete(group)
  },
  gate: async (argument: Parameters<typeof measureGate>[0]) =>
    (await import('./gate-process.ts')).measureGate(argument),
  httpLoad: loadHttp,
  bareStart: async (argument: BareArgument) => {
    const { startBareHttp } = await import('./bare-http.ts')
    bare = await startBareHttp(argument)
    return bare.port
  },
  bareStop: async (_: null) => bare?.close(),
  lookupOpen: async (argument: LookupArgument) => {
    lookup = new RawLookup(argument)
  },
  lookup: async ({ cached }: { readonly cached: boolean }) => {
    if (lookup === null) throw new Error('open first')
    return lookup.measure(cached)
  },
  mapOpen: async (argument: MapArgument) => {
    source = await openMapSource(argument)
  },
  mapCommit: (argument: {
    readonly commits: number
    readonly changed: number
    readonly gapMs: number
  }) => opened(source).commit(argument.commits, argument.changed, argument.gapMs),
  mapSnapshot: (_: null) => opened(source).snapshotBytes(),
  mapClose: async (_: null) => {
    await source?.close()
    await nats?.close()
    source = null
    nats = null
  },
  mapFollow: (to: { readonly group: string; readonly nats: NatsOptions; readonly count: number }) =>
    followers.follow(to.group, to.nats, to.count),
  mapReached: async (_: null) => followers.reached(),
  mapTaken: async (_: null) => followers.take(),
  mapUnfollow: async (_: null) => {
    followers.close()
    await nats?.close()
    await readers?.close()
    nats = null
    readers = null
  },
  natsOpen: async (to: { readonly nats: NatsOptions }) => {
    nats = new RawNats(to.nats)
  },
  natsSubscribe: async (to: {
    readonly nats: NatsOptions
    readonly subject: string
    readonly count: number
  }) => {
    nats = new RawNats(to.nats)
    await nats.subscribe(to.subject, to.count)
    readers = new RawNats(to.nats)
    await readers.subscribe(`${to.subject}.read`, to.count, true)
  },
  /** Bodies of these sizes, of which nothing is read. */
  natsPublish: (what: {
    readonly subject: string
    readonly sizes: readonly number[]
    readonly gapMs: number
  }) => {
    const bodies = what.sizes.map((size) => [Buffer.alloc(Math.max(0, size - NUMBER_BYTES), 120)])
    return opened(nats).publish(what.subject, bodies, what.gapMs)
  },
  /** The deltas of the last commits, once more, each after a commit as large, for those who read. */
  natsRepublish: (what: {
    readonly subject: string
    readonly changed: number
    readonly gapMs: number
  }) => {
    const from = opened(source)
    const { subject, changed, gapMs } = what
    const due = () => from.commitRaw(changed)
    return opened(nats).publish(`${subject}.read`, from.deltas(), gapMs, due)
  },
  natsArrived: async (_: null) => opened(nats).arrived(),
  natsRead: async (_: null) => opened(readers).arrived(),
  natsForget: async (_: null) => opened(readers).forget(),
  fenceOpen: async (argument: FenceArgument) => {
    // Loads the clients of all resources, which no other scenario needs and not every user has.
    const { RawFences: Fences } = await import('./raw-fences.ts')
    fences = new Fences()
    await fences.open(argument)
  },
  fenceMeasure: (argument: Parameters<RawFences['measure']>[0]) => opened(fences).measure(argument),
  fenceClose: async (_: null) => fences?.close(),
  lookupClose: async (_: null) => lookup?.close(),
}
export type ProcessCalls = typeof calls

process.on('message', async ({ id, name, argument }: ToProcess) => {
  try {
    const call = calls[name as keyof ProcessCalls] as (argument: unknown) => Promise<unknown>
    say({ type: 'answer', id, value: await call(argument) })
  } catch (error: unknown) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error)
    say({ type: 'error', id, detail })
  }
})
process.once('disconnect', () => process.exit(0))
