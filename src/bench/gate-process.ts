/**
 * The cost of an admission, measured in one process: `p.work` of an empty function, the same function
 * behind an async function without a gate, and `performance.now()` alone. What is left of the first
 * without the second is the admission.
 */
import { startWorker } from '../composition/start-worker.ts'
import type { Partition } from '../runtime/worker-options.ts'
import type { JoinArgument } from './member-process.ts'

export type GateFigures = {
  /** Nanoseconds per call, one value per batch. */
  readonly workNs: readonly number[]
  readonly bareNs: readonly number[]
  readonly nowNs: readonly number[]
  readonly checkNs: readonly number[]
}

const CALLS = 100_000

export async function measureGate({
  batches,
  ...argument
}: Omit<JoinArgument, 'itemMs'> & { readonly batches: number }): Promise<GateFigures> {
  const { group, keyPrefix, settings, etcd, nats, members } = argument
  let serving: (partition: Partition) => void = () => {}
  const served = new Promise<Partition>((resolve) => {
    serving = resolve
  })
  const worker = await startWorker({
    ...{ group, keyPrefix, settings, etcd, nats, signals: false },
    ...(members[0] === undefined ? {} : { member: members[0] }),
    telemetry: { record: () => {} },
    run: serving,
  })
  const partition = await served
  await measureBatch(partition)
  const all: Record<keyof GateFigures, number[]> = {
    workNs: [],
    bareNs: [],
    nowNs: [],
    checkNs: [],
  }
  for (let batch = 0; batch < batches; batch += 1) {
    const one = await measureBatch(partition)
    for (const name of Object.keys(all) as (keyof GateFigures)[]) all[name].push(one[name])
  }
  await worker.stop()
  return all
}

async function measureBatch(partition: Partition): Promise<Record<keyof GateFigures, number>> {
  const nothing = () => {}
  const now = await timed(() => {
    let sum = 0
    for (let call = 0; call < CALLS; call += 1) sum += performance.now()
    return sum
  })
  const check = await timed(() => {
    for (let call = 0; call < CALLS; call += 1) partition.check()
  })
  const bare = await timed(async () => {
    for (let call = 0; call < CALLS; call += 1) await without(partition, nothing)
  })
  const work = await timed(async () => {
    for (let call = 0; call < CALLS; call += 1) await partition.work(nothing)
  })
  return { workNs: work, bareNs: bare, nowNs: now, checkNs: check }
}

/** As `Partition.work`, with nothing asked. */
async function without<T>(
  partition: Partition,
  fn: (partition: Partition) => T | Promise<T>,
): Promise<T> {
  counts.inFlight += 1
  try {
    return await fn(partition)
  } finally {
    counts.inFlight -= 1
  }
}
const counts = { inFlight: 0 }

async function timed(run: () => unknown): Promise<number> {
  const beganMs = performance.now()
  await run()
  return ((performance.now() - beganMs) / CALLS) * 1e6
}
