/** The state in which most configurations begin: the first process serves everything, all maps show it. */
import type { Model } from './model.ts'
import { allMoves } from './moves.ts'

export function servedRow(model: Model): Int32Array {
  let row = model.startRow()
  const first = model.settings.processes[0] as string
  const { partitions, resources } = model.settings
  for (let partition = 0; partition < partitions; partition += 1) {
    const p = `(p${partition})`
    row = take(model, row, (label) => label === `${first}: campaigns ${p}`)
    row = take(model, row, (label) => label === `${first}: owned 1.1 ${p} done`)
    for (let resource = 0; resource < resources; resource += 1) {
      row = take(model, row, (label) => label.startsWith(`${first}: seals resource ${resource}`))
    }
    row = take(model, row, (label) => label === `${first}: acquired ${p}`)
  }
  for (const { maps } of model.layout.processes) {
    for (let partition = 0; partition < partitions; partition += 1) {
      row[maps + partition] = row[model.layout.records + partition] as number
    }
  }
  return row
}

/** The state after the one move whose label fits. */
export function take(model: Model, from: Int32Array, fits: (label: string) => boolean): Int32Array {
  let found: Int32Array | null = null
  model.look(from, (row, _, label) => {
    if (found === null && fits(label())) found = row.slice()
  })
  allMoves(model)
  if (found === null) throw new Error('no such move')
  return found
}
