/**
 * The network and the store: a request in flight is executed at any time, or its reply is lost; a reply
 * comes at once, or at any later time. Requests overtake each other.
 *
 * Reductions. A request that is dropped on the way is one whose reply was lost and that never lands. A
 * request whose sender no longer counts on it is only kept while it may still land. A reply that comes at
 * once is one move with the execution: nothing else that could happen between looks at it.
 */
import type { PartitionId } from '../../src/core/ids.ts'
import type { OwnershipEvent } from '../../src/core/ownership-state.ts'
import { checkLanding, countCommit, type Sender } from './checks.ts'
import type { Model } from './model.ts'
import type { Request } from './words.ts'

export function requestMoves(model: Model, process: number): void {
  const { requests, replies } = model.process(process)
  for (const item of distinct(model.words.items(model.from[requests] as number))) {
    const request = model.words.requests.of(item)
    switch (request.type) {
      case 'confirm':
        confirmMoves(model, process, item, request)
        break
      case 'commit':
        commitMoves(model, process, item, request)
        break
      case 'limbo':
        limboMoves(model, process, item, request)
        break
      default:
        request satisfies never
    }
  }
  for (const item of distinct(model.words.items(model.from[replies] as number))) {
    const { event } = model.words.events.of(item)
    model.begin(() => `${nameOf(model, process)}: hears ${event.type} late`)
    model.row[replies] = model.words.without(model.row[replies] as number, item)
    deliver(model, process, item)
    model.done(true)
  }
}

type Of<Type extends Request['type']> = Request & { readonly type: Type }

function confirmMoves(model: Model, process: number, item: number, request: Of<'confirm'>): void {
  const record = model.from[model.layout.records + request.partition] as number
  answer(model, process, { item, executes: null, event: model.words.confirmed(item, record) })
}

function commitMoves(model: Model, process: number, item: number, request: Of<'commit'>): void {
  const { commit, from } = request
  const { words } = model
  const { partition } = words.commits.of(commit).commit
  const verdict = model.store.judge(model.from, commit)
  if (verdict === 'done') {
    answer(model, process, { item, executes: request, event: words.committed(commit) })
  } else {
    const stands = model.from[model.layout.records + partition] as number
    answer(model, process, { item, executes: null, event: words.refused(commit, stands) })
    // Told for the record or for the whole batch, as the batch happens to be.
    if (verdict === 'refused-all') {
      answer(model, process, { item, executes: null, event: words.refusedAll(commit) })
    }
  }
  if (!model.has('lost')) return
  model.begin(() => `${nameOf(model, process)}: ${wordsOf(model, item)} times out`)
  model.spend('lost')
  take(model, process, item)
  put(model, process, { type: 'limbo', commit, from })
  model.feedEvent(process, partition, words.unsettled(commit))
  model.done(false)
}

function limboMoves(model: Model, process: number, item: number, request: Of<'limbo'>): void {
  const { commit, from } = request
  if (model.store.judge(model.from, commit) === 'done') {
    model.begin(() => `${nameOf(model, process)}: ${wordsOf(model, item)} lands late`)
    take(model, process, item)
    land(model, commit, { type: 'process', from })
    model.done(true)
  }
  model.begin(() => `${nameOf(model, process)}: ${wordsOf(model, item)} never lands`)
  take(model, process, item)
  model.done(true)
}

/** `owned 1.2 (p0)`: what the request would write. */
function wordsOf(model: Model, item: number): string {
  const request = model.words.requests.of(item)
  if (request.type === 'confirm') return 'store answers confirm'
  const { next, partition } = model.words.commits.of(request.commit).commit
  return `${next.phase} ${next.incarnation}.${next.generation} (p${partition})`
}

const OUTCOMES: Readonly<Partial<Record<OwnershipEvent['type'], string>>> = {
  committed: ' done',
  refused: ' refused',
  'refused-all': ' refused with its batch',
}

/** The store writes the record. */
export function land(model: Model, commit: number, sender: Sender): void {
  const { record, commit: written } = model.words.commits.of(commit)
  checkLanding(model, commit, sender)
  model.row[model.layout.records + written.partition] = record
  countCommit(model, written.partition)
}

/** `executes`: the commit that lands; null: nothing does. */
type Answer = {
  readonly item: number
  readonly executes: Of<'commit'> | null
  readonly event: number
}

/** The reply comes at once, or waits. */
function answer(model: Model, process: number, given: Answer): void {
  const isStopped = model.from[model.process(process).asleep] !== 0
  if (!isStopped) {
    model.begin(() => answerWords(model, process, given))
    execute(model, process, given)
    deliver(model, process, given.event)
    model.done(true)
  }
  if (!isStopped && !model.has('late')) return
  model.begin(() => `${answerWords(model, process, given)}, the reply is on its way`)
  // What a stopped process is told waits in its socket, at no cost.
  if (!isStopped) model.spend('late')
  execute(model, process, given)
  const { replies } = model.process(process)
  model.row[replies] = model.words.with(model.row[replies] as number, given.event)
  model.done(isStopped)
}

function execute(model: Model, process: number, { item, executes }: Answer): void {
  take(model, process, item)
  if (executes === null) return
  land(model, executes.commit, { type: 'process', from: executes.from })
}

function answerWords(model: Model, process: number, { item, event }: Answer): string {
  const { type } = model.words.events.of(event).event
  return `${nameOf(model, process)}: ${wordsOf(model, item)}${OUTCOMES[type] ?? ''}`
}

/**
 * A reply runs ahead of the watch: the map learns from it first, unless it knows better, and shows the seat
 * what it then knows, since the reply may be to a commit that is over, and the watch will not tell it again.
 */
function deliver(model: Model, process: number, reply: number): void {
  const { event, partition } = model.words.events.of(reply)
  const shown = shownBy(model, partition, event)
  const at = model.process(process).maps + partition
  if (shown !== 0 && isNews(model, model.row[at] as number, shown)) model.row[at] = shown
  model.feedEvent(process, partition, reply)
  model.feedEvent(process, partition, model.words.shows(partition, model.row[at] as number))
}

function shownBy(model: Model, partition: PartitionId, event: OwnershipEvent): number {
  switch (event.type) {
    case 'confirmed':
      return model.words.record(partition, event.stored)
    case 'refused':
      return model.words.record(partition, event.stands)
    case 'committed':
      // What the commit wrote; found by its operation, which is in the record that it wrote.
      return model.words.recordOfOperation(partition, event.operation)
    default:
      return 0
  }
}

function isNews(model: Model, known: number, shown: number): boolean {
  if (known === 0 || model.row[model.layout.restored] !== 0) return true
  return model.words.records.of(shown).order > model.words.records.of(known).order
}

function take(model: Model, process: number, item: number): void {
  const { requests } = model.process(process)
  model.row[requests] = model.words.without(model.row[requests] as number, item)
}

function put(model: Model, process: number, request: Request): void {
  const { requests } = model.process(process)
  const item = model.words.request(request)
  model.row[requests] = model.words.with(model.row[requests] as number, item)
}

/** Equal requests make equal moves. */
function distinct(items: readonly number[]): readonly number[] {
  return items.length < 2 ? items : items.filter((item, at) => item !== items[at - 1])
}

/** The process as traces call it: its name, and a mark for each further life of that name. */
export function nameOf(model: Model, process: number): string {
  const name = model.settings.processes[process] as string
  const same = model.settings.processes.slice(0, process).filter((other) => other === name)
  return `${name}${"'".repeat(same.length)}`
}
