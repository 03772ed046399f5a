/**
 * How long news of a group are gathered before they are told over the broadcast, or looked at together. A message
 * costs each of its receivers more than what one change says: while many partitions move, a change for each of
 * them several hundred times a second, what comes within a few hundredths of a second goes out together. A
 * group at rest is told of at once.
 */
const TOLD_MOVE_MS = 0.02
const GATHER_MAX_MS = 25

/** @param moveMs for each move under way */
export function gatherMs(movesUnderWay: number, moveMs = TOLD_MOVE_MS): number {
  return Math.min(GATHER_MAX_MS, Math.floor(movesUnderWay * moveMs))
}
