/** Names of the benchmark's members, in order. */
export function memberOf(index: number): string {
  return `m-${String(index).padStart(2, '0')}`
}
