/**
 * The limit of an acquire: every process watches and counts, some of them write. Which number of
 * writers and of requests in flight is fastest depends on the machine, so all are tried beforehand, the
 * better ones again; the best of those is the limit. It is measured as Tenure is, once in each round: the
 * better of several runs would tell of the machine's luck.
 */
import { DEFAULT_KEY_PREFIX } from '../core/keys.ts'
import type { BenchProcess } from './bench-processes.ts'
import type { BenchContext } from './bench-types.ts'
import { memberOf } from './member-names.ts'
import { createRawEtcd } from './raw-etcd.ts'
import type { Wire } from './raw-watch.ts'

type Shape = { readonly writers: number; readonly inFlight: number }

export type GrantLimit = {
  /** Grants per second of the best shape. */
  measure(partitions: number): Promise<number>
  /** How the best was written, for the reader. */
  describe(): string
}

/** @param members processes that watch, of which one to all write */
export async function findGrantLimit(
  context: BenchContext,
  members: number,
  wire: Wire,
): Promise<GrantLimit> {
  const processes = await context.processes.take(members)
  const shapes: Shape[] = [1, 2, 4, 8, 16].map((inFlight) => ({ writers: 1, inFlight }))
  shapes.push({ writers: 2, inFlight: 2 }, { writers: 2, inFlight: 4 })
  shapes.push({ writers: members, inFlight: 1 }, { writers: members, inFlight: 2 })
  const run = new LimitRun(context, processes, wire)
  let tried: { shape: Shape; rate: number }[] = []
  // Once for nothing: what these write and read by is not compiled yet.
  for (const shape of shapes) await run.rate(CALIBRATION / 4, shape)
  for (const shape of shapes) tried.push({ shape, rate: await run.rate(CALIBRATION, shape) })
  tried = tried.sort((a, b) => b.rate - a.rate).slice(0, TRIED_AGAIN)
  for (const one of tried) one.rate += await run.rate(CALIBRATION, one.shape)
  const shape = tried.sort((a, b) => b.rate - a.rate)[0]?.shape ?? { writers: 1, inFlight: 8 }
  return {
    measure: (partitions) => run.rate(partitions, shape),
    describe: () => `${shape.writers} writers, ${shape.inFlight} requests in flight each`,
  }
}

const CALIBRATION = 10_000
const TRIED_AGAIN = 4

class LimitRun {
  private readonly context: BenchContext
  private readonly processes: readonly BenchProcess[]
  private readonly wire: Wire
  private count = 0

  constructor(context: BenchContext, processes: readonly BenchProcess[], wire: Wire) {
    this.context = context
    this.processes = processes
    this.wire = wire
  }

  /** Grants per second, all of them new. */
  async rate(partitions: number, { writers, inFlight }: Shape): Promise<number> {
    const { servers, runId } = this.context
    const group = `${runId}-${this.wire}-limit-${this.count++}`
    const etcd = createRawEtcd(servers.etcd)
    const key = `${DEFAULT_KEY_PREFIX}${group}/incarnation`
    await etcd.send(
      etcd.prepare({ compare: [], success: [{ type: 'put', key, value: '1' }], failure: [] }),
    )
    await Promise.all(
      this.processes.map((one, index) => {
        const own = { member: memberOf(index), from: index, step: writers }
        // Who does not write has no partitions.
        const { wire } = this
        const argument = {
          group,
          keyPrefix: DEFAULT_KEY_PREFIX,
          etcd: servers.etcd,
          wire,
          ...own,
        }
        return one.call('rawPrepare', { ...argument, partitions: index < writers ? partitions : 0 })
      }),
    )
    const runs = await Promise.all(
      this.processes.slice(0, writers).map((one) => one.call('rawGrant', { inFlight })),
    )
    const beganMs = Math.min(...runs.map((run) => run.beganMs))
    const endedMs = Math.max(...runs.map((run) => run.endedMs))
    await Promise.all(this.processes.map((one) => one.call('rawEnd', null)))
    await etcd.clear(`${DEFAULT_KEY_PREFIX}${group}/`, servers.embedded)
    etcd.close()
    return (partitions / (endedMs - beganMs)) * 1000
  }
}
