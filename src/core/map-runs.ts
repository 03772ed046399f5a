/**
 * Run-length form of a column whose values repeat: [value, count, value, count, …]. Most maps have one
 * incarnation and one phase, so such a column costs nothing.
 */

export function writeRuns(column: readonly number[]): number[] {
  const runs: number[] = []
  let count = 0
  for (let index = 0; index < column.length; index += 1) {
    count += 1
    if (column[index] === column[index + 1]) continue
    runs.push(column[index] as number, count)
    count = 0
  }
  return runs
}

/** Null unless the runs are counts that add up to `length`. */
export function readRuns(value: unknown, length: number): number[] | null {
  if (!Array.isArray(value) || value.length % 2 !== 0) return null
  const column: number[] = []
  for (let index = 0; index < value.length; index += 2) {
    const item = value[index]
    const count = value[index + 1]
    if (!Number.isSafeInteger(item) || item < 0) return null
    if (!Number.isSafeInteger(count) || count < 1 || column.length + count > length) return null
    for (let times = 0; times < count; times += 1) column.push(item)
  }
  return column.length === length ? column : null
}
