/**
 * How long news of a group are gathered before they are told over the broadcast. A message costs each of its
 * receivers more than what one change says: while many partitions move, a change for each of them several hundred
 * times a second, what comes within a few hundredths of a second goes out together. A group at rest is told
 * of at once.
 */
const MOVE_MS = 0.02
const GATHER_MAX_MS = 25

/** @param movesUnderWay records that are being revoked */
export function gatherMs(movesUnderWay: number): number {
  return Math.min(GATHER_MAX_MS, Math.floor(movesUnderWay * MOVE_MS))
}
