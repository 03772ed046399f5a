/**
 * The promises over the composed world, where it takes more than one step of one machine to see them:
 *
 *   S1 S2 record-I   each change of a record, by the invariants that run in production
 *   S4               a grant takes nothing from a living owner that did not give it up; nobody is granted
 *                    to the dead
 *   S5               what is handed over is not at work any more; no open gate outlives its record
 *   S6               nothing is admitted under a session that the store has dropped (honest stores)
 *   S9               no change of a record by a deposed rebalancer
 *   S10              no two processes at work on one partition (honest stores, unfenced)
 *   recovery         commits between a fault and its recovery are bounded
 *
 * S3 and S7 are checked where effects and reads happen: `resource-moves.ts`.
 */

import { checkRecordTransition } from '../../src/core/record-invariants.ts'
import { comparePositions, type Position } from '../../src/core/token.ts'
import { assertUnbroken, Broken } from './broken.ts'
import type { Model } from './model.ts'

/** Who sent a commit. */
export type Sender =
  /** `from`: the grant that its owner gave up after a drain; 0: none. */
  | { readonly type: 'process'; readonly from: number }
  | { readonly type: 'rebalancer'; readonly elected: boolean }

/** The commit is about to land in `model.row`. */
export function checkLanding(model: Model, commit: number, sender: Sender): void {
  const { row, words, layout } = model
  const entry = words.commits.of(commit)
  const { partition } = entry.commit
  const before = row[layout.records + partition] as number
  const beforeRecord = words.stored(before)?.record ?? null
  const after = entry.commit.next
  assertUnbroken(checkRecordTransition(beforeRecord, after), `${after.phase} lands`)
  if (sender.type === 'rebalancer' && !sender.elected) {
    throw new Broken('S9', 'a deposed rebalancer changed a record')
  }
  if (after.phase === 'owned' && !isAlive(model, row, words.records.of(entry.record).owner)) {
    throw new Broken('S4', 'granted to the dead')
  }
  if (before !== 0) checkGivenUp(model, before, commit, sender)
}

/** Whoever owned it is gone, or gave it up, or was overruled where a fence stands. */
function checkGivenUp(model: Model, before: number, commit: number, sender: Sender): void {
  const { row, words, settings } = model
  const { owner, partition, stored } = words.records.of(before)
  const { next } = words.commits.of(commit).commit
  const leaves = next.phase === 'owned' || next.phase === 'vacant'
  if (!leaves || owner === 0 || !isAlive(model, row, owner)) return
  const isOwn = sender.type === 'process' && isGrantOf(model, before, sender.from)
  if (!isOwn) {
    const isForced = next.phase === 'vacant' || next.how === 'forced'
    if (settings.fenced && isForced) return
    throw new Broken('S4', 'taken from a living owner that did not give it up')
  }
  for (const process of settings.processes.keys()) {
    const grant = openGrant(model, row, process, partition)
    if (grant !== 0 && isGrantOf(model, before, grant)) {
      throw new Broken('S5', `handed over with an open gate (${stored.record.generation})`)
    }
    const work = row[model.process(process).works + partition] as number
    if (work > 0 && isGrantOf(model, before, work)) {
      throw new Broken('S5', `handed over while work runs (${stored.record.generation})`)
    }
  }
}

/** What no moment may show; `row` is reached. */
export function checkMoment(model: Model, row: Int32Array): void {
  for (let partition = 0; partition < model.settings.partitions; partition += 1) {
    checkGates(model, row, partition)
  }
}

function checkGates(model: Model, row: Int32Array, partition: number): void {
  const { settings, words, layout } = model
  const restored = row[layout.restored] !== 0
  const exclusive = settings.honest && !settings.fenced && !restored
  let open = 0
  let busy = 0
  for (const process of settings.processes.keys()) {
    if (exclusive && isAtWork(model, row, process, partition)) busy += 1
    const grant = openGrant(model, row, process, partition)
    if (grant === 0) continue
    const isCertain =
      !settings.fenced &&
      !restored &&
      standsFor(model, row, process) === sessionOfGrant(model, grant)
    if (isCertain && !isGrantOf(model, row[layout.records + partition] as number, grant)) {
      throw new Broken('S5', 'a gate is open for a grant that the record does not name')
    }
    if (open !== 0 && !restored && isSamePosition(words.grants.of(open), words.grants.of(grant))) {
      throw new Broken('S2', 'two sessions work under one position')
    }
    open = grant
  }
  if (busy > 1) throw new Broken('S10', 'one partition is being processed twice')
}

/** Its gate is open, or admitted work goes on before the deadline. */
function isAtWork(model: Model, row: Int32Array, process: number, partition: number): boolean {
  if (openGrant(model, row, process, partition) !== 0) return true
  const work = row[model.process(process).works + partition] as number
  return work > 0 && model.believes(row, process) === sessionOfGrant(model, work)
}

function isSamePosition(a: Position, b: Position): boolean {
  return comparePositions(a, b) === 0
}

/** A piece of work is being admitted under this grant. */
export function checkAdmission(model: Model, process: number, grant: number): void {
  const { settings, row, layout } = model
  if (!settings.honest || row[layout.restored] !== 0) return
  if (standsFor(model, row, process) === sessionOfGrant(model, grant)) return
  throw new Broken('S6', 'work is admitted under a session that the store has dropped')
}

/** A commit has landed in `model.row`. */
export function countCommit(model: Model, partition: number): void {
  const { settings, row, layout } = model
  if (settings.commitsMax === 0) return
  const at = layout.commits + partition
  row[at] = (row[at] as number) + 1
  if ((row[at] as number) > settings.commitsMax) {
    throw new Broken('recovery', `more than ${settings.commitsMax} commits without a fault between`)
  }
}

/** The grant for which the process's gate is open now; 0: none. */
export function openGrant(
  model: Model,
  row: Int32Array,
  process: number,
  partition: number,
): number {
  const fields = model.process(process)
  const seat = model.seats.of(row[fields.seats + partition] as number)
  if (!seat.open || model.believes(row, process) === 0) return 0
  return seat.grant
}

export function isGrantOf(model: Model, record: number, grant: number): boolean {
  if (record === 0 || grant === 0) return false
  const { owner, stored } = model.words.records.of(record)
  const held = model.words.grants.of(grant)
  return owner === sessionOfGrant(model, grant) && comparePositions(stored.record, held) === 0
}

export function isAlive(model: Model, row: Int32Array, session: number): boolean {
  const { cast, layout } = model
  for (let name = 0; name < cast.names.length; name += 1) {
    if (row[layout.leases + name] === session && session !== 0) return true
  }
  return false
}

export function sessionOfGrant(model: Model, grant: number): number {
  return Number(model.words.grants.of(grant).owner.session)
}

/** The session that stands under the process's name. */
export function standsFor(model: Model, row: Int32Array, process: number): number {
  return row[model.layout.leases + model.cast.name(process)] as number
}
