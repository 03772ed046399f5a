/** A backup of the store: what a restore brings back. */
export type Backup = {
  readonly records: readonly number[]
  readonly incarnation: number
  readonly leases: readonly number[]
}

export function backupKey({ records, incarnation, leases }: Backup): string {
  return `${records}/${incarnation}/${leases}`
}
