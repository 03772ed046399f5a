/**
 * Rebalancers that may ask for any move at any time, the elected one and those deposed. Their commits are
 * the production ones, from whatever record stands.
 *
 * Reduction: a rebalancer's commit is sent and executed in one move. It compares the record's whole value,
 * so between the two nothing can have happened to the record; what else may have happened (its deposition,
 * the end of the grantee's session, a risen incarnation) only makes the store refuse it, and each of these is
 * reached here too, since even a deposed rebalancer sends, and grantees may be dead ones.
 */
import type { StoredRecord } from '../../src/core/commit.ts'
import { type Commit, force, retarget, revoke, vacate } from '../../src/core/commit.ts'
import type { PartitionId } from '../../src/core/ids.ts'
import type { PendingMove } from '../../src/core/partition-record.ts'
import { checkCommit } from '../../src/core/record-invariants.ts'
import { Broken } from './broken.ts'
import { rebalancerSession, sessionNumber } from './cast.ts'
import type { Model } from './model.ts'
import { land } from './request-moves.ts'
import type { BudgetKey } from './settings.ts'
import { named, operationName, UNNAMED } from './words.ts'

const STAMP = { operation: UNNAMED, atMs: 0 }

export function plannerMoves(model: Model): void {
  const { rebalancers, partitions } = model.settings
  for (let rebalancer = 0; rebalancer < rebalancers; rebalancer += 1) {
    for (let partition = 0; partition < partitions; partition += 1) {
      const record = model.from[model.layout.records + partition] as number
      if (record !== 0) recordMoves(model, rebalancer, partition, record)
    }
  }
  electionMoves(model)
}

/** The election passes to the next, or to nobody for a while. */
export function electionMoves(model: Model): void {
  const { rebalancers } = model.settings
  const elected = model.from[model.layout.elected] as number
  if (elected === 0) {
    for (let next = 1; next <= rebalancers; next += 1) {
      model.begin(() => `rebalancer ${next} is elected`)
      model.row[model.layout.elected] = next
      model.done(false)
    }
  } else if (model.has('depositions')) {
    model.begin(() => `rebalancer ${elected} is deposed`)
    model.spend('depositions')
    model.row[model.layout.elected] = 0
    model.done(false)
  }
}

function recordMoves(
  model: Model,
  rebalancer: number,
  partition: PartitionId,
  id: number,
): void {
  const stored = model.words.stored(id) as StoredRecord
  const { record, raw } = stored
  const session = rebalancerSession(rebalancer)
  const targets = [...model.cast.names, null]
  const write = (commit: Commit, key: BudgetKey, words: string) =>
    send(model, rebalancer, { stored, commit, key, words })
  if (record.phase === 'owned' && model.has('revokes')) {
    for (const to of targets) {
      if (to === record.owner.member) continue
      const move: PendingMove = { id: 'm', to, reason: 'balance', by: 'r', rewrites: 0, atMs: 0 }
      write(revoke(partition, { raw, record }, move, session, STAMP), 'revokes', `revokes, to ${to}`)
    }
  }
  if (record.phase !== 'revoking') return
  if (model.has('rewrites')) {
    for (const to of targets) {
      if (to === record.move.to) continue
      const commit = retarget(partition, { raw, record }, to, session, STAMP)
      write(commit, 'rewrites', `turns the move to ${to}`)
    }
  }
  if (!model.settings.fenced || !model.has('forces')) return
  const by = { type: 'rebalancer', session } as const
  for (const grantee of grantees(model)) {
    const owner = model.cast.owner(grantee)
    if (owner.member === record.owner.member) continue
    const incarnation = model.from[model.layout.incarnation] as number
    const commit = force(partition, stored, owner, incarnation, by, STAMP)
    write(commit, 'forces', `forces the move to ${owner.member}`)
  }
  write(vacate(partition, stored, STAMP, [by]), 'forces', 'forces it vacant')
}

/** Sessions that stand, and those that a map behind the store still shows. */
function grantees(model: Model): readonly number[] {
  const sessions = new Set<number>()
  for (let name = 0; name < model.cast.names.length; name += 1) {
    const stands = model.from[model.layout.leases + name] as number
    if (stands !== 0) sessions.add(stands)
  }
  for (const [process, { opened }] of model.layout.processes.entries()) {
    const life = model.from[opened] as number
    if (life > 0) sessions.add(sessionNumber(process, life))
  }
  return [...sessions]
}

function send(
  model: Model,
  rebalancer: number,
  write: {
    readonly stored: StoredRecord
    readonly commit: Commit
    readonly key: BudgetKey
    readonly words: string
  },
): void {
  const { stored, key, words } = write
  model.begin(() => `rebalancer ${rebalancer + 1} ${words}`)
  const [broken] = checkCommit(stored.record, write.commit, 'rebalancer')
  if (broken !== undefined) throw new Broken(broken.name, broken.detail)
  const content = model.words.content(write.commit)
  let number = 0
  while (model.mentions(operationName(content, number))) number += 1
  const commit = model.words.commit(named(write.commit, operationName(content, number)))
  if (model.store.judge(model.from, commit) !== 'done') return
  model.spend(key)
  const elected = model.from[model.layout.elected] === rebalancer + 1
  land(model, commit, { type: 'rebalancer', elected })
  model.done(false)
}
