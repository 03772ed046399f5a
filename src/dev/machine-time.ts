/** Milliseconds on the machine's monotonic clock, which all processes on it share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
