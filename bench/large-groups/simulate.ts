/**
 * What a group would cost that no machine here can hold: a queue of an etcd's work, fed by the members'
 * committers as they are built (batches of 120, six in flight, a time limit per request that halves what is
 * in flight), with costs that were measured (measure-costs.ts). One server works one request at a time; a
 * request of n grants takes n × (grant + watchers × delivery).
 *
 * Not in it: the network, disks that stall, elections of etcd itself, members that die meanwhile. What it
 * shows is what saturates first, not what a day in production looks like.
 */
export type Costs = {
  /** etcd's time for one grant of a full batch, nobody watching. */
  readonly grantUs: number
  /** etcd's time, and its clients' on the same machine, to deliver one event to one watcher. */
  readonly deliverUs: number
  /** A member's processor time to take in one event of etcd's watch. */
  readonly watchUs: number
  /** An observer's processor time to take in one change of a delta. */
  readonly deltaUs: number
  readonly deltaBytesPerChange: number
  readonly snapshotBytesPerPartition: number
  /** Heap and arrays of a member for one partition. */
  readonly memberBytesPerPartition: number
}

export type Shape = {
  readonly name: string
  readonly members: number
  readonly partitions: number
  /** How many groups, each with an etcd cluster of its own, share members and partitions. */
  readonly groups: number
  /** Who watches etcd: every member, or `serve` alone, with members that follow the map over NATS. */
  readonly followedOver: 'etcd' | 'nats'
  readonly leaseTtlMs: number
}

export type Prediction = {
  readonly name: string
  /** From the first request until every member knows of the last grant; null: it does not come to an end. */
  readonly coldStartMs: number | null
  readonly grantsPerSecond: number
  /** Requests given up for late, of all. */
  readonly timedOut: number
  readonly longestWaitMs: number
  /** Grants after one member's death, at that rate. */
  readonly takeOverMs: number
  readonly etcdEventsPerSecond: number
  readonly natsBytesPerSecond: number
  /** Share of one processor that each member spends on following. */
  readonly memberProcessorShare: number
  readonly memberBytes: number
  readonly snapshotBytes: number
}

const BATCH = 120
const IN_FLIGHT_MAX = 6
const SERVE_PROCESSES = 2
const ROUNDS_MAX = 3_000_000
/** After which a request counts as late, as a share of T; its outcome is then read back. */
const TIMEOUT_SHARE = 1 / 3

export function predict(shape: Shape, costs: Costs): Prediction {
  const members = Math.ceil(shape.members / shape.groups)
  const partitions = Math.ceil(shape.partitions / shape.groups)
  const watchers = shape.followedOver === 'etcd' ? members + SERVE_PROCESSES : SERVE_PROCESSES
  const perGrantUs = costs.grantUs + watchers * costs.deliverUs
  const run = coldStart(members, partitions, perGrantUs / 1000, shape.leaseTtlMs * TIMEOUT_SHARE)
  const isWatched = shape.followedOver === 'etcd'
  const followUs = isWatched ? costs.watchUs : costs.deltaUs
  // Each member has a processor of its own to take in what happens to every partition.
  const coldStartMs =
    run.tookMs === null ? null : Math.max(run.tookMs, (partitions * followUs) / 1000)
  const rate = coldStartMs === null ? 0 : (partitions / coldStartMs) * 1000
  const all = rate * shape.groups
  return {
    name: shape.name,
    coldStartMs,
    grantsPerSecond: all,
    timedOut: run.late / Math.max(1, run.sent),
    longestWaitMs: run.longestWaitMs,
    takeOverMs: ((partitions / members) * perGrantUs) / 1000,
    etcdEventsPerSecond: rate * watchers,
    natsBytesPerSecond: rate * costs.deltaBytesPerChange * members * shape.groups,
    memberProcessorShare: (rate * followUs) / 1e6,
    memberBytes: partitions * costs.memberBytesPerPartition,
    snapshotBytes: partitions * costs.snapshotBytesPerPartition,
  }
}

type Sent = { readonly member: number; readonly grants: number; readonly sentMs: number }
type Run = {
  readonly tookMs: number | null
  readonly sent: number
  readonly late: number
  readonly longestWaitMs: number
}

/** All members campaign for their share at once. */
function coldStart(members: number, partitions: number, grantMs: number, timeoutMs: number): Run {
  const left = new Array<number>(members).fill(Math.ceil(partitions / members))
  const allowed = new Array<number>(members).fill(IN_FLIGHT_MAX)
  const inFlight = new Array<number>(members).fill(0)
  const queue: Sent[] = []
  let nowMs = 0
  let sent = 0
  let late = 0
  let longestWaitMs = 0
  const send = (member: number) => {
    while ((inFlight[member] ?? 0) < (allowed[member] ?? 1) && (left[member] ?? 0) > 0) {
      const grants = Math.min(BATCH, left[member] ?? 0)
      left[member] = (left[member] ?? 0) - grants
      inFlight[member] = (inFlight[member] ?? 0) + 1
      queue.push({ member, grants, sentMs: nowMs })
      sent += 1
    }
  }
  for (let member = 0; member < members; member += 1) send(member)
  for (let served = 0; served < queue.length; served += 1) {
    if (served > ROUNDS_MAX) return { tookMs: null, sent, late, longestWaitMs }
    const { member, grants, sentMs } = queue[served] as Sent
    nowMs += grants * grantMs
    const waitedMs = nowMs - sentMs
    longestWaitMs = Math.max(longestWaitMs, waitedMs)
    inFlight[member] = (inFlight[member] ?? 1) - 1
    if (waitedMs > timeoutMs) {
      // It was executed; the member, which gave it up, reads it back and sends half as much from now on.
      late += 1
      nowMs += grantMs
      allowed[member] = Math.max(1, (allowed[member] ?? 1) >> 1)
    } else if (waitedMs <= timeoutMs / 3) {
      allowed[member] = Math.min(IN_FLIGHT_MAX, (allowed[member] ?? 1) + 1)
    }
    send(member)
  }
  return { tookMs: nowMs, sent, late, longestWaitMs }
}
