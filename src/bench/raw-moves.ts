/**
 * The limit of planned moves, one process's part: the same load, the same records and batches as
 * Tenure's, and nothing decided. A process that sees a partition revoked waits for its item, sends the
 * grant that was made beforehand, and the one that sees the grant begins to work.
 */
import { COMMITS_PER_BATCH_MAX } from '../core/commit-batch.ts'
import type { GroupName, MemberName, SessionId } from '../core/ids.ts'
import { groupKeys } from '../core/keys.ts'
import { machineMs } from '../dev/machine-time.ts'
import type { EtcdStoreOptions } from '../etcd/etcd-store.ts'
import { BATCHES_IN_FLIGHT_MAX, COMPANY_COMMITS } from '../runtime/committer.ts'
import { itemTime, type MemberNotes, type OpenNote, openNote } from './grant-notes.ts'
import type { Held } from './process-messages.ts'
import { type ChainPlan, chainOf, isMoving, ownerAt, prepareBatch } from './raw-chain.ts'
import { createRawEtcd, type RawEtcd, type RawRequest } from './raw-etcd.ts'
import { partitionOfEvent, type RawEvents, type Wire } from './raw-watch.ts'

export type MovesArgument = {
  readonly group: string
  readonly keyPrefix: string
  readonly etcd: EtcdStoreOptions
  readonly wire: Wire
  readonly members: readonly string[]
  readonly sessions: readonly string[]
  readonly planner: string
  /** Index among the members; -1: this process revokes and owns nothing. */
  readonly index: number
  readonly partitions: number
  readonly itemMs: number
  /** Each gives the half of the partitions to the other half of the members. */
  readonly waves: number
}

type Nested = RawRequest['success'][number]
type Sender = {
  readonly compare: RawRequest['compare']
  readonly nested: Map<number, Nested>
}
type Load = { note: OpenNote; revoked: boolean; timer: NodeJS.Timeout | null; timed: boolean }

const LEASE_S = 600

export class RawMoves {
  private readonly etcd: RawEtcd
  private readonly argument: MovesArgument
  private readonly plan: ChainPlan
  private readonly tell: (held: Held) => void
  /** What this process sends at each step: revokes of the planner, grants of an owner. */
  private readonly senders = new Map<number, Sender>()
  private readonly loads = new Map<number, Load>()
  /** How often each partition's record was written. */
  private readonly steps: Uint32Array
  private readonly endings: (() => Promise<void> | void)[] = []
  private grants: OpenNote[] = []
  private queue: { readonly step: number; readonly partition: number }[] = []
  private inFlight = 0
  private flushing = false
  private loading = false
  private telling: NodeJS.Timeout | null = null
  private items = 0
  private firstDrainingMs = 0
  private lastServingMs = 0
  private failure: Error | null = null

  constructor(argument: MovesArgument, tell: (held: Held) => void) {
    this.argument = argument
    this.tell = tell
    this.steps = new Uint32Array(argument.partitions)
    this.etcd = createRawEtcd(argument.etcd, argument.wire)
    this.plan = {
      keys: groupKeys(argument.keyPrefix, argument.group as GroupName),
      partitions: argument.partitions,
      members: argument.members.map((member, index) => ({
        member: member as MemberName,
        session: (argument.sessions[index] ?? '') as SessionId,
      })),
      planner: argument.planner as SessionId,
    }
  }

  /** Opens lease and watch and prepares what will be sent. */
  async begin(): Promise<void> {
    const { keys, members, planner } = this.plan
    const { index } = this.argument
    const session = members[index]?.session ?? planner
    const key =
      index < 0 ? keys.rebalancer : keys.member(members[index]?.member ?? ('' as MemberName))
    this.endings.push(await this.etcd.openLease(session, LEASE_S))
    const own = { type: 'put', key, value: 'limit', session } as const
    await this.etcd.send(this.etcd.prepare({ compare: [], success: [own], failure: [] }))
    this.endings.push(
      await this.etcd.watch(`${keys.prefix}partitions/`, (events) => this.watched(events)),
    )
    this.prepare()
  }

  /** Takes the first grants, once every process watches: a record's step is how often it was written. */
  start(): void {
    const first = this.senders.get(1)
    if (first === undefined) return
    for (const partition of first.nested.keys()) this.queue.push({ step: 1, partition })
    this.flush()
  }

  load({ on }: { readonly on: boolean }): void {
    this.loading = on
    for (const load of this.loads.values()) if (on && load.timer === null) this.item(load)
  }

  /** Revokes all that moves in the wave, with so many requests in flight. */
  async revoke(wave: number, inFlight: number): Promise<void> {
    const sender = this.senders.get(2 + wave * 2)
    if (sender === undefined) throw new Error('no such wave')
    const partitions = [...sender.nested.keys()]
    let from = 0
    const send = async (): Promise<void> => {
      while (from < partitions.length) {
        const batch = partitions.slice(from, from + COMMITS_PER_BATCH_MAX)
        from += COMMITS_PER_BATCH_MAX
        await this.etcd.send(requestOf(sender, batch))
      }
    }
    await Promise.all(Array.from({ length: inFlight }, send))
  }

  notes(): MemberNotes {
    const open = [...this.loads.values()].map(({ note }) => note)
    const grants = [...this.grants, ...open].map((note) => ({ ...note }))
    const { firstDrainingMs, lastServingMs, items, failure } = this
    if (failure !== null) throw failure
    this.grants = []
    this.firstDrainingMs = 0
    this.lastServingMs = 0
    this.items = 0
    const none = { sessionOpenedMs: 0, firstGrantMs: 0, lost: 0, buckets: new Map() }
    return { ...none, firstDrainingMs, lastServingMs, items, grants }
  }

  async end(): Promise<void> {
    for (const load of this.loads.values()) clearTimeout(load.timer ?? undefined)
    this.loads.clear()
    for (const end of this.endings) await end()
    this.etcd.close()
    this.say()
  }

  private prepare(): void {
    const { index, partitions, waves } = this.argument
    const steps = 1 + waves * 2
    const commits = new Map<number, ReturnType<typeof chainOf>[number][]>()
    for (let partition = 0; partition < partitions; partition += 1) {
      const owners = [ownerAt(this.plan, partition, 1), ownerAt(this.plan, partition, 3)]
      if (index >= 0 && !owners.includes(index)) continue
      const chain = chainOf(this.plan, partition, isMoving(this.plan, partition) ? steps : 1)
      for (const [place, commit] of chain.entries()) {
        const step = place + 1
        // A grant is sent by who owned before; the first by its owner, a revoke by the planner.
        const sender =
          step === 1 ? ownerAt(this.plan, partition, 1) : ownerAt(this.plan, partition, step - 1)
        if ((step % 2 === 0 ? -1 : sender) !== index) continue
        const list = commits.get(step) ?? []
        list.push(commit)
        commits.set(step, list)
      }
    }
    for (const [step, list] of commits) {
      const { shared, nested } = prepareBatch(this.plan.keys, list)
      const request = this.etcd.prepare({ compare: shared, success: nested, failure: [] })
      const byPartition = list.map(
        ({ partition }, place) => [partition, request.success[place] as Nested] as const,
      )
      this.senders.set(step, { compare: request.compare, nested: new Map(byPartition) })
    }
  }

  private watched(events: RawEvents): void {
    const { index } = this.argument
    for (const event of events) {
      const partition = partitionOfEvent(event)
      const step = (this.steps[partition] ?? 0) + 1
      this.steps[partition] = step
      if (ownerAt(this.plan, partition, step) !== index) continue
      if (step % 2 === 1) this.granted(partition, (step + 1) >> 1)
      else this.revoked(partition)
    }
  }

  private granted(partition: number, generation: number): void {
    const load: Load = {
      note: openNote(partition, generation),
      revoked: false,
      timer: null,
      timed: false,
    }
    this.loads.set(partition, load)
    this.lastServingMs = machineMs()
    if (this.loading) this.item(load)
    this.changed()
  }

  private revoked(partition: number): void {
    const load = this.loads.get(partition)
    if (load === undefined) return
    if (this.firstDrainingMs === 0) this.firstDrainingMs = machineMs()
    load.revoked = true
    load.note.inFlight = load.timer === null ? 0 : 1
    if (load.timer === null) this.drained(load)
  }

  private item(load: Load): void {
    const { note } = load
    const nowMs = machineMs()
    const isFirst = note.firstAdmittedMs === 0
    if (isFirst) note.firstAdmittedMs = nowMs
    note.lastAdmittedMs = nowMs
    this.items += 1
    load.timer = setTimeout(
      () => {
        load.timer = null
        note.lastEndedMs = machineMs()
        if (load.revoked) this.drained(load)
        else if (this.loading) this.item(load)
      },
      itemTime(note.partition, this.argument.itemMs, isFirst),
    )
  }

  private drained({ note }: Load): void {
    this.loads.delete(note.partition)
    this.grants.push(note)
    this.changed()
    // The step after a grant of generation g is 2g, and that which hands over 2g + 1.
    this.queue.push({ step: note.generation * 2 + 1, partition: note.partition })
    this.flushSoon()
  }

  private flushSoon(): void {
    if (this.flushing) return
    this.flushing = true
    setImmediate(() => {
      this.flushing = false
      this.flush()
    })
  }

  /** As Tenure's committer: so many requests under way, and few commits wait while one is. */
  private flush(): void {
    while (this.queue.length > 0 && this.inFlight < BATCHES_IN_FLIGHT_MAX) {
      if (this.inFlight > 0 && this.queue.length < COMPANY_COMMITS) return
      const step = this.queue[0]?.step ?? 0
      const batch = this.queue.slice(0, COMMITS_PER_BATCH_MAX).filter((one) => one.step === step)
      this.queue = this.queue.slice(batch.length)
      const sender = this.senders.get(step)
      if (sender === undefined) throw new Error(`nothing was prepared for step ${step}`)
      this.inFlight += 1
      const request = requestOf(
        sender,
        batch.map(({ partition }) => partition),
      )
      void this.etcd
        .send(request)
        .catch((error: Error) => {
          this.failure = error
          console.error('limit of moves:', error.message)
        })
        .finally(() => {
          this.inFlight -= 1
          this.flush()
        })
    }
  }

  private changed(): void {
    this.telling ??= setTimeout(() => this.say(), 5)
  }

  say(): void {
    this.telling = null
    this.tell({ serving: this.loads.size, changedAtMs: machineMs() })
  }
}

function requestOf({ compare, nested }: Sender, partitions: readonly number[]): RawRequest {
  return {
    compare,
    success: partitions.map((partition) => nested.get(partition) as Nested),
    failure: [],
  }
}
