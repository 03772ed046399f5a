/**
 * Fenced resources, deciding by the production rule (`core/fence.ts`). A new owner seals one after the other
 * and reads when all are sealed; work that runs under a grant, held or lost, may land at any time, again and
 * again.
 *
 *   S3   an accepted token is never older than one that was accepted or read under before; one token has
 *        one writer
 *   S7   nothing older lands at any resource once the new owner has read the first
 */
import { decideEffect, decideSeal, type Sealed } from '../../src/core/fence.ts'
import { comparePositions } from '../../src/core/token.ts'
import { Broken } from './broken.ts'
import { sessionOfGrant } from './checks.ts'
import type { Model } from './model.ts'
import { nameOf } from './request-moves.ts'

export function resourceMoves(model: Model, process: number): void {
  if (model.settings.resources === 0) return
  for (let partition = 0; partition < model.settings.partitions; partition += 1) {
    sealMoves(model, process, partition)
    for (let resource = 0; resource < model.settings.resources; resource += 1) {
      effectMoves(model, process, partition, resource)
    }
  }
}

function sealMoves(model: Model, process: number, partition: number): void {
  const fields = model.process(process)
  const seat = model.seats.of(model.from[fields.seats + partition] as number)
  const resource = model.from[fields.seals + partition] as number
  if (seat.status !== 'acquiring' || resource >= model.settings.resources) return
  const at = sealedAt(model, partition, resource)
  const highest = sealedOf(model, model.from[at] as number)
  const token = sealedOf(model, seat.grant) as Sealed
  const decision = decideSeal(highest, token)
  model.begin(() => `${nameOf(model, process)}: seals resource ${resource}: ${decision}`)
  if (decision === 'refuse') refused(model, process, partition, highest)
  else {
    if (decision === 'raise') model.row[at] = seat.grant
    model.row[fields.seals + partition] = resource + 1
  }
  model.done(true)
}

function effectMoves(model: Model, process: number, partition: number, resource: number): void {
  const fields = model.process(process)
  const work = Math.abs(model.from[fields.works + partition] as number)
  if (work === 0) return
  const highest = sealedOf(model, model.from[sealedAt(model, partition, resource)] as number)
  const token = sealedOf(model, work) as Sealed
  const decision = decideEffect(highest, token)
  model.begin(() => `${nameOf(model, process)}: writes to resource ${resource}: ${decision}`)
  if (decision === 'accept') checkAccepted(model, partition, work)
  else if (model.seats.of(model.from[fields.seats + partition] as number).grant === work) {
    refused(model, process, partition, highest)
    model.done(true)
  }
}

function checkAccepted(model: Model, partition: number, work: number): void {
  const reader = model.from[model.layout.readers + partition] as number
  if (reader === 0 || reader === work) return
  const accepted = model.words.grants.of(work)
  const read = model.words.grants.of(reader)
  const order = comparePositions(accepted, read)
  if (order < 0) throw new Broken('S7', 'an older effect landed after the new owner had read')
  if (order === 0 && sessionOfGrant(model, work) !== sessionOfGrant(model, reader)) {
    throw new Broken('S3', 'two sessions write under one position')
  }
}

/** "Highest seen is not below yours": one of the signs of a restored store. */
function refused(model: Model, process: number, partition: number, highest: Sealed | null): void {
  const seat = model.seats.of(model.row[model.process(process).seats + partition] as number)
  if (highest === null || seat.grant === 0) return
  if (comparePositions(highest, model.words.grants.of(seat.grant)) < 0) return
  const { incarnation, generation } = highest
  model.feed(process, partition, { type: 'fence-ahead', highest: { incarnation, generation } })
}

function sealedAt(model: Model, partition: number, resource: number): number {
  return model.layout.sealed + partition * model.settings.resources + resource
}

function sealedOf(model: Model, grant: number): Sealed | null {
  if (grant === 0) return null
  const { incarnation, generation, owner } = model.words.grants.of(grant)
  return { incarnation, generation, session: owner.session }
}
