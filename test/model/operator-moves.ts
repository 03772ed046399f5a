/** Operators: they back the store up, restore it, and raise the incarnation. */
import { backupKey } from './backups.ts'
import type { Model } from './model.ts'

export function operatorMoves(model: Model): void {
  raiseMoves(model)
  if (model.has('restores')) restoreMoves(model)
}

/** Above all that is known anywhere, as the command does it; one is kept for after each restore. */
function raiseMoves(model: Model): void {
  const { layout, from } = model
  const raises = from[layout.budget.raises] as number
  if (raises <= (from[layout.budget.restores] as number)) return
  let highest = from[layout.incarnation] as number
  for (const fields of layout.processes) {
    highest = Math.max(highest, from[fields.incarnation] as number)
    for (let partition = 0; partition < model.settings.partitions; partition += 1) {
      const { seat } = model.seats.of(from[fields.seats + partition] as number)
      highest = Math.max(highest, seat.highest.incarnation)
    }
  }
  for (let at = 0; at < model.settings.partitions * model.settings.resources; at += 1) {
    const sealed = from[layout.sealed + at] as number
    if (sealed !== 0) highest = Math.max(highest, model.words.grants.of(sealed).incarnation)
  }
  const isHalted = Array.from({ length: model.settings.partitions }, (_, partition) =>
    model.words.stored(from[layout.records + partition] as number),
  ).some((stored) => stored?.record.phase === 'halted')
  model.begin(() => `operator: raises the incarnation to ${highest + 1}`)
  model.spend('raises')
  model.row[layout.incarnation] = highest + 1
  model.done(isHalted || from[layout.restored] !== 0)
}

function restoreMoves(model: Model): void {
  const { layout, from, settings, cast } = model
  const records = Array.from(from.subarray(layout.records, layout.records + settings.partitions))
  const leases = Array.from(from.subarray(layout.leases, layout.leases + cast.names.length))
  const incarnation = from[layout.incarnation] as number
  const backup = { records, incarnation, leases }
  const kept = from[layout.backup] as number
  if (kept === 0) {
    model.begin(() => 'operator: backs the store up')
    model.row[layout.backup] = model.backups.id(backupKey(backup), () => backup)
    model.done(false)
    return
  }
  const old = model.backups.of(kept)
  if (old.records.every((record, partition) => record === records[partition])) return
  model.begin(() => 'operator: restores the backup')
  model.spend('restores')
  for (const [partition, record] of old.records.entries()) {
    model.row[layout.records + partition] = record
  }
  for (const [name, session] of old.leases.entries()) {
    model.row[layout.leases + name] = session
    model.row[layout.marks + name] = 0
  }
  model.row[layout.incarnation] = old.incarnation
  model.row[layout.backup] = 0
  model.row[layout.restored] = 1
  // A fresh list follows: the maps show what is there now, whatever they showed before.
  model.done(false)
}
