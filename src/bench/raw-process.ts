/**
 * The limit of grants and moves: the same records, compares and batches as Tenure's, built by the same
 * code beforehand and sent by raw gRPC with no logic, while every process has a watch that counts.
 */
import { random } from '../composition/connections.ts'
import { elect } from '../core/commit.ts'
import { COMMITS_PER_BATCH_MAX, commitBatch } from '../core/commit-batch.ts'
import type { GroupName, MemberName } from '../core/ids.ts'
import { groupKeys } from '../core/keys.ts'
import type { Owner } from '../core/partition-record.ts'
import { machineMs } from '../dev/machine-time.ts'
import type { EtcdStoreOptions } from '../etcd/etcd-store.ts'
import { createRawEtcd, type RawEtcd, type RawRequest } from './raw-etcd.ts'
import type { Wire } from './raw-watch.ts'

export type RawPrepareArgument = {
  readonly group: string
  readonly keyPrefix: string
  readonly etcd: EtcdStoreOptions
  readonly wire: Wire
  readonly member: string
  /** The partitions that this process grants itself: from, from + step, … below `partitions`. */
  readonly from: number
  readonly step: number
  readonly partitions: number
}

export type RawRun = { readonly beganMs: number; readonly endedMs: number }

const LEASE_S = 600

export class RawProcess {
  private readonly connected = new Map<Wire, RawEtcd>()
  private etcd: RawEtcd | null = null
  private batches: RawRequest[] = []
  private seen = 0
  private endings: (() => Promise<void> | void)[] = []

  /** Opens watch and lease, and builds what will be sent. */
  async prepare(argument: RawPrepareArgument): Promise<void> {
    const { group, keyPrefix, partitions, from, step, wire } = argument
    const etcd = this.connected.get(wire) ?? createRawEtcd(argument.etcd, wire)
    this.connected.set(wire, etcd)
    this.etcd = etcd
    const keys = groupKeys(keyPrefix, group as GroupName)
    this.seen = 0
    this.endings.push(
      await etcd.watch(`${keys.prefix}partitions/`, (events) => {
        this.seen += events.length
      }),
    )
    const owner: Owner = { member: argument.member as MemberName, session: random.sessionId() }
    this.endings.push(await etcd.openLease(owner.session, LEASE_S))
    const key = keys.member(owner.member)
    await etcd.send(
      etcd.prepare({
        compare: [],
        success: [{ type: 'put', key, value: 'limit', session: owner.session }],
        failure: [],
      }),
    )
    this.batches = []
    let commits = []
    for (let partition = from; partition < partitions; partition += step) {
      const stamp = { operation: random.operationId(), atMs: Date.now() }
      commits.push(elect(partition, null, owner, 1, stamp))
      if (commits.length < COMMITS_PER_BATCH_MAX) continue
      this.batches.push(etcd.prepare(commitBatch(keys, commits).transaction))
      commits = []
    }
    if (commits.length > 0) {
      this.batches.push(etcd.prepare(commitBatch(keys, commits).transaction))
    }
  }

  async grant(inFlight: number): Promise<RawRun> {
    const { etcd } = this
    if (etcd === null) throw new Error('prepare first')
    const beganMs = machineMs()
    let next = 0
    const send = async (): Promise<void> => {
      for (let batch = this.batches[next++]; batch !== undefined; batch = this.batches[next++]) {
        await etcd.send(batch)
      }
    }
    await Promise.all(Array.from({ length: inFlight }, send))
    return { beganMs, endedMs: machineMs() }
  }

  counted(): number {
    return this.seen
  }

  async end(): Promise<void> {
    for (const end of this.endings) await end()
    this.endings = []
    this.batches = []
  }
}
