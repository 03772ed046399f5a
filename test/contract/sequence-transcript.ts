/**
 * Runs sequences of steps on a store and writes down all that it answered and all that a watch told of
 * them. Many sequences run side by side, each under its own prefix and with its own leases, so none sees
 * another; revisions are counted in changes of the sequence itself. Equal behaviour then gives equal
 * transcripts, whatever else the store does.
 */
import type { Store, StoreReply, WatchEvent } from '../../src/ports/store.ts'
import { randomSequence, type Step } from './random-sequences.ts'
import { expectOk, revisionOf, TIMEOUT, watchInto } from './store-actions.ts'
import type { StoreWorld } from './world.ts'

const ROOT = '/sequences/'
const LEASE_TTL_MS = 60_000
/** Side by side on one connection: enough to keep a server busy, few enough to stay within timeouts. */
const LANES = 25

type Answered = { readonly step: Step; readonly reply: StoreReply<unknown> }

/** The transcript of each seed. */
export async function transcribe(
  world: StoreWorld,
  seeds: readonly number[],
): Promise<ReadonlyMap<number, readonly string[]>> {
  const store = world.connect()
  const base = await world.run(write(store, `${ROOT}begin`))
  const answers = new Map<number, readonly Answered[]>()
  const waiting = [...seeds]
  const lane = async () => {
    for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
      answers.set(seed, await runSequence(store, randomSequence(seed, prefixOf(seed)), base))
    }
  }
  await world.run(Promise.all(Array.from({ length: LANES }, lane)))
  const end = await world.run(write(store, `${ROOT}end`))
  const log = watchInto(store, ROOT, base + 1)
  const isEnd = (event: WatchEvent) => revisionOf(event) === end
  await world.eventually('the watch has seen the end', () => log.batches.at(-1)?.some(isEnd))
  log.watch.close()
  const events = log.batches.flat()
  return new Map(seeds.map((seed) => [seed, transcriptOf(seed, answers.get(seed) ?? [], events)]))
}

function prefixOf(seed: number): string {
  return `${ROOT}${seed}/`
}

async function write(store: Store, key: string): Promise<number> {
  const success = [{ type: 'put', key, value: '' } as const]
  return expectOk(await store.transact({ compare: [], success, failure: [] }, TIMEOUT)).revision
}

async function runSequence(
  store: Store,
  steps: readonly Step[],
  base: number,
): Promise<readonly Answered[]> {
  const answers: Answered[] = []
  for (const step of steps) {
    answers.push({
      step,
      reply: await take(store, step, (index) => revisionAt(answers, index, base)),
    })
  }
  for (const step of steps) {
    if (step.type === 'open-lease') await store.closeLease(step.session, TIMEOUT)
  }
  return answers
}

/** The store's revision when the step of that number, or the last one before it, was answered. */
function revisionAt(answers: readonly Answered[], index: number, base: number): number {
  const known = answers.slice(0, index + 1).findLast(({ step, reply }) => isTold(step) && reply.ok)
  return known?.reply.ok === true ? known.reply.revision : base
}

function take(
  store: Store,
  step: Step,
  revisionOfStep: (index: number) => number,
): Promise<StoreReply<unknown>> {
  switch (step.type) {
    case 'transact':
      return store.transact(step.transaction, TIMEOUT)
    case 'list': {
      const { prefix, limit, after, at } = step
      const atRevision =
        at === 'future' ? Number.MAX_SAFE_INTEGER : at === 'now' ? null : revisionOfStep(at)
      return store.list(
        {
          prefix,
          limit,
          ...(after === null ? {} : { after }),
          ...(atRevision === null ? {} : { atRevision }),
        },
        TIMEOUT,
      )
    }
    case 'open-lease':
      return store.openLease(step.session, LEASE_TTL_MS, TIMEOUT)
    case 'renew-lease':
      return store.renewLease(step.session, TIMEOUT)
    case 'close-lease':
      return store.closeLease(step.session, TIMEOUT)
    default:
      return step satisfies never
  }
}

/** Lease replies carry whatever revision their server had reached, which proves nothing. */
function isTold(step: Step): boolean {
  return step.type === 'transact' || step.type === 'list'
}

function transcriptOf(
  seed: number,
  answers: readonly Answered[],
  allEvents: readonly WatchEvent[],
): readonly string[] {
  const events = allEvents.filter((event) =>
    (event.type === 'put' ? event.entry.key : event.key).startsWith(prefixOf(seed)),
  )
  const revisions = [...new Set(events.map(revisionOf))]
  /** How many changes of this sequence there were up to the revision. */
  const count = (revision: number) => revisions.filter((own) => own <= revision).length
  const lines = answers.map(({ step, reply }) => {
    // A failure counts by its reason; its words are the server's own.
    const told = !reply.ok
      ? reply.reason
      : { value: counted(reply.value, count), at: isTold(step) ? count(reply.revision) : null }
    return `${JSON.stringify(step)} => ${JSON.stringify(told)}`
  })
  return [...lines, ...events.map((event) => JSON.stringify(counted(event, count)))]
}

const REVISIONS: readonly string[] = ['createRevision', 'modRevision', 'newestModRevision']

function counted(value: unknown, count: (revision: number) => number): unknown {
  if (Array.isArray(value)) return value.map((element) => counted(element, count))
  if (typeof value !== 'object' || value === null) return value
  // Sorted, for two stores may build the same answer in another order.
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(
    fields.map(([name, field]) => {
      const isRevision = REVISIONS.includes(name) && typeof field === 'number'
      return [name, isRevision ? count(field) : counted(field, count)]
    }),
  )
}
