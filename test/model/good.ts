/**
 * Where healing has come to its end: each partition is served by someone whose session stands, or nobody is
 * left who could. A bound that stops the healing (no session left to open, no raise left) counts as its end.
 */
import { isAlive, isGrantOf, openGrant } from './checks.ts'
import type { Model } from './model.ts'

export function isGood(model: Model, row: Int32Array): boolean {
  if (isDeserted(model, row)) return true
  for (let partition = 0; partition < model.settings.partitions; partition += 1) {
    if (!isServed(model, row, partition)) return false
  }
  return true
}

/** No session stands and none will. */
function isDeserted(model: Model, row: Int32Array): boolean {
  const { layout, cast } = model
  for (let name = 0; name < cast.names.length; name += 1) {
    if (row[layout.leases + name] !== 0) return false
  }
  return layout.processes.every(
    ({ exited, opened }) =>
      row[exited] !== 0 || (row[opened] !== 0 && row[layout.budget.sessions] === 0),
  )
}

function isServed(model: Model, row: Int32Array, partition: number): boolean {
  const { layout, words, settings } = model
  const record = row[layout.records + partition] as number
  if (record === 0) return false
  const { owner, stored } = words.records.of(record)
  if (stored.record.phase === 'halted') return row[layout.budget.raises] === 0
  if (owner === 0 || !isAlive(model, row, owner)) return false
  if (stored.record.incarnation !== row[layout.incarnation]) return false
  return settings.processes.some((_, process) => {
    const grant = openGrant(model, row, process, partition)
    if (isGrantOf(model, record, grant)) return true
    return isWaiting(model, row, process, partition, record)
  })
}

/** A wedged drain under the policy `wait` waits, by definition (L3). */
function isWaiting(
  model: Model,
  row: Int32Array,
  process: number,
  partition: number,
  record: number,
): boolean {
  if (!model.settings.wedged || model.settings.policy !== 'wait') return false
  const { seat, grant } = model.seats.of(row[model.process(process).seats + partition] as number)
  const isAlarmed = seat.now.status === 'draining' && seat.now.overdueAtMs === null
  return isAlarmed && isGrantOf(model, record, grant)
}
