/**
 * Rebalancers that run the production machine: elected, told by their maps and by operators' orders what to
 * do, deposed at any moment and possibly unaware of it, woken when they asked for it. Without time their
 * clocks jump to whatever they wait for.
 */
import type { PartitionId } from '../../src/core/ids.ts'
import { encodeRebalance } from '../../src/core/operator-records.ts'
import type { RebalancerEvent } from '../../src/core/rebalancer-state.ts'
import type { RecordWrite } from '../../src/core/rebalancer-writes.ts'
import { writeTransaction } from '../../src/core/rebalancer-writes.ts'
import { Broken } from './broken.ts'
import { rebalancerSession } from './cast.ts'
import type { RebalancerFields } from './layout.ts'
import type { Model } from './model.ts'
import type { PlannerOutcome } from './planner-steps.ts'
import { land } from './request-moves.ts'
import { dropLease } from './session-moves.ts'
import { type Holds, KEYS } from './store.ts'
import { pair } from './table.ts'
import { named, operationName } from './words.ts'

/** What a rebalancer has on its way. */
export type Sent =
  | { readonly type: 'commit'; readonly commit: number }
  | { readonly type: 'write'; readonly slot: string; readonly write: RecordWrite }
  | { readonly type: 'close'; readonly slot: string; readonly session: number }
  /** Its sender counts on no reply any more; it may still land. */
  | { readonly type: 'limbo'; readonly of: number }

export function machineMoves(model: Model): void {
  for (const [rebalancer, fields] of model.layout.rebalancers.entries()) {
    electedMove(model, rebalancer, fields)
    for (const item of new Set(model.words.items(model.from[fields.requests] as number))) {
      requestMoves(model, rebalancer, fields, item)
    }
    if (model.from[fields.state] === 0) continue
    viewMove(model, rebalancer, fields)
    wakeMove(model, rebalancer, fields)
    if (model.from[model.layout.elected] === rebalancer + 1) continue
    model.begin(() => `rebalancer ${rebalancer + 1} learns that it is deposed`)
    model.row[fields.state] = 0
    model.row[fields.view] = 0
    model.done(false)
  }
  const elected = model.from[model.layout.elected] as number
  if (elected !== 0 && model.has('depositions')) {
    model.begin(() => `rebalancer ${elected} is deposed`)
    model.spend('depositions')
    model.row[model.layout.elected] = 0
    model.done(false)
  }
}

function electedMove(model: Model, rebalancer: number, fields: RebalancerFields): void {
  if (model.from[model.layout.elected] !== 0 || model.from[fields.state] !== 0) return
  model.begin(() => `rebalancer ${rebalancer + 1} is elected`)
  model.row[model.layout.elected] = rebalancer + 1
  const view = model.views.current(model.row)
  model.row[fields.view] = view
  perform(model, fields, model.machine.start(rebalancer, view))
  model.done(false)
}

function viewMove(model: Model, rebalancer: number, fields: RebalancerFields): void {
  const view = model.views.current(model.from)
  if (model.from[fields.view] === view) return
  model.begin(() => `rebalancer ${rebalancer + 1} sees what stands`)
  model.row[fields.view] = view
  step(model, fields, { type: 'changed', partitions: partitionsOf(model) })
  model.done(false)
}

function wakeMove(model: Model, rebalancer: number, fields: RebalancerFields): void {
  const { wakeInMs } = model.machine.of(model.from[fields.state] as number)
  if (wakeInMs === null || (model.settings.timed && wakeInMs > 0)) return
  model.begin(() => `rebalancer ${rebalancer + 1} wakes`)
  model.row[fields.state] = model.machine.later(model.from[fields.state] as number, wakeInMs)
  step(model, fields, { type: 'wake' })
  model.done(false)
}

function requestMoves(
  model: Model,
  rebalancer: number,
  fields: RebalancerFields,
  item: number,
): void {
  const sent = model.sent.of(item)
  const take = () => {
    model.row[fields.requests] = model.words.without(model.row[fields.requests] as number, item)
  }
  model.begin(() => `rebalancer ${rebalancer + 1}: ${describe(model, sent)}`)
  take()
  if (sent.type === 'limbo') execute(model, rebalancer, sent.of)
  else {
    const answer = execute(model, rebalancer, item)
    if (model.row[fields.state] !== 0) answer(fields)
  }
  model.done(false)
  if (sent.type === 'limbo') {
    model.begin(() => `rebalancer ${rebalancer + 1}: ${describe(model, sent)} never`)
    take()
    model.done(false)
    return
  }
  if (!model.has('lost') || model.from[fields.state] === 0) return
  model.begin(() => `rebalancer ${rebalancer + 1}: ${describe(model, sent)}, no reply`)
  model.spend('lost')
  take()
  add(model, fields, { type: 'limbo', of: item })
  step(model, fields, unanswered(model, sent))
  model.done(false)
}

/** What the store does with it; returns what its reply brings to the sender. */
function execute(
  model: Model,
  rebalancer: number,
  item: number,
): (fields: RebalancerFields) => void {
  const sent = model.sent.of(item)
  switch (sent.type) {
    case 'commit':
      return executeCommit(model, rebalancer, sent.commit)
    case 'write':
      return executeWrite(model, rebalancer, item, sent.write)
    case 'close': {
      const name = model.layout.leases
      for (let at = 0; at < model.cast.names.length; at += 1) {
        if (model.row[name + at] === sent.session) dropLease(model, at)
      }
      return (fields) => step(model, fields, { type: 'wrote', slot: sent.slot, inView: false })
    }
    case 'limbo':
      throw new Error('what is late is executed as what it was')
    default:
      return sent satisfies never
  }
}

function executeCommit(model: Model, rebalancer: number, commit: number) {
  const { layout, row } = model
  const { partition } = model.words.commits.of(commit).commit
  const isElected = row[layout.elected] === rebalancer + 1
  const verdict = model.store.judge(row, commit)
  if (verdict === 'done') land(model, commit, { type: 'rebalancer', elected: isElected })
  return (fields: RebalancerFields) => {
    if (verdict === 'refused-all' && !isElected) {
      row[fields.state] = 0
      row[fields.view] = 0
      return
    }
    // The reply shows the record, whatever the map shows.
    const view = model.views.of(row[fields.view] as number)
    const records = view.records.with(partition, row[layout.records + partition] as number)
    if (verdict !== 'refused-all') row[fields.view] = model.views.id({ ...view, records })
    step(model, fields, { type: 'answered', partitions: [partition] })
  }
}

/** What the production transaction of this write compares. */
function writes(model: Model, rebalancer: number, item: number, write: RecordWrite): Holds {
  return model.compiledWrites.of(pair(item, rebalancer), () => {
    const { compare } = writeTransaction(KEYS, rebalancerSession(rebalancer), write)
    return model.store.all(compare)
  })
}

function executeWrite(model: Model, rebalancer: number, item: number, write: RecordWrite) {
  const { layout, row } = model
  const isElected = row[layout.elected] === rebalancer + 1
  const done = writes(model, rebalancer, item, write)(row)
  if (done && !isElected) throw new Broken('S9', `a deposed rebalancer wrote ${write.type}`)
  if (done) apply(model, write)
  return (fields: RebalancerFields) => {
    if (!done && !isElected) {
      row[fields.state] = 0
      row[fields.view] = 0
      return
    }
    if (done) row[fields.view] = model.views.current(row)
    step(model, fields, { type: 'wrote', slot: slotOf(model, item), inView: done })
  }
}

function slotOf(model: Model, item: number): string {
  const sent = model.sent.of(item)
  return 'slot' in sent ? sent.slot : ''
}

function apply(model: Model, write: RecordWrite): void {
  const { row, layout, cast, views } = model
  switch (write.type) {
    case 'evict':
      row[layout.marks + cast.nameIndex(write.member)] = 1
      return
    case 'rebalance': {
      const orders = views.listOrders(row[layout.orders] as number)
      const after = orders.map((order) => (order.id === write.after.id ? write.after : order))
      row[layout.orders] = views.ordersId(after)
      return
    }
    case 'forget':
    case 'cordon':
    case 'uncordon':
    case 'unfreeze':
      throw new Error(`nobody asks for ${write.type} here`)
    default:
      write satisfies never
  }
}

function unanswered(model: Model, sent: Exclude<Sent, { type: 'limbo' }>): RebalancerEvent {
  if (sent.type !== 'commit') return { type: 'wrote', slot: sent.slot, inView: false }
  return { type: 'answered', partitions: [model.words.commits.of(sent.commit).commit.partition] }
}

function step(model: Model, fields: RebalancerFields, event: RebalancerEvent): void {
  const { row } = model
  const outcome = model.machine.step(row[fields.state] as number, row[fields.view] as number, event)
  perform(model, fields, outcome)
}

function perform(model: Model, fields: RebalancerFields, outcome: PlannerOutcome): void {
  const { row } = model
  row[fields.state] = outcome.state
  for (const request of outcome.requests) {
    const sent: Sent =
      request.type === 'commit'
        ? { type: 'commit', commit: numbered(model, request.commit, request.content) }
        : request
    add(model, fields, sent)
  }
}

function add(model: Model, fields: RebalancerFields, sent: Sent): void {
  const item = model.sent.id(JSON.stringify(sent), () => sent)
  model.row[fields.requests] = model.words.with(model.row[fields.requests] as number, item)
}

function numbered(model: Model, commit: Parameters<typeof named>[0], content: number): number {
  let number = 0
  while (model.mentionsNow(operationName(content, number))) number += 1
  return model.words.commit(named(commit, operationName(content, number)))
}

export function partitionsOf(model: Model): readonly PartitionId[] {
  return Array.from({ length: model.settings.partitions }, (_, partition) => partition)
}

function describe(model: Model, sent: Sent): string {
  switch (sent.type) {
    case 'commit': {
      const { next } = model.words.commits.of(sent.commit).commit
      return `its ${next.phase} ${next.incarnation}.${next.generation} reaches the store`
    }
    case 'write':
      return sent.write.type === 'rebalance'
        ? `its report reaches the store: ${encodeRebalance(sent.write.after)}`
        : `its ${sent.write.type} reaches the store`
    case 'close':
      return `closes the lease of session ${sent.session}`
    case 'limbo':
      return `${describe(model, model.sent.of(sent.of))} late`
    default:
      return sent satisfies never
  }
}
