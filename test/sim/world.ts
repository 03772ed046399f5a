/**
 * One simulated world: production code of workers, serve processes and observers on virtual time, and the
 * checkers that watch etcd, the resources and the processes from outside. It knows nothing of faults but
 * how to hold them (`apply-fault.ts`).
 */
import { groupName } from '../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys, keySubject } from '../../src/core/keys.ts'
import { decodePartitionRecord, haltedThrough } from '../../src/core/partition-record.ts'
import type { AcceptLine } from '../../src/evidence/accept-log.ts'
import type { HistoryEvent } from '../../src/evidence/history-log.ts'
import { historyEventOf } from '../../src/evidence/history-log.ts'
import type { WatchEvent } from '../../src/ports/store.ts'
import { createRingOrder } from '../../src/ring/hashring-order.ts'
import type { GroupService } from '../../src/runtime/group-service.ts'
import {
  createMemoryEtcd,
  createMemoryNats,
  createSeededRandom,
  createVirtualClock,
  type EtcdChange,
  type EtcdSnapshot,
} from '../../src/testing/index.ts'
import { BreachBox } from './breach.ts'
import { EtcdTruth } from './etcd-truth.ts'
import type { PartitionPhase } from './fault-kinds.ts'
import { MapChecker } from './map-checker.ts'
import { MemberProcess, type Workplace } from './member-process.ts'
import { ObserverProcess } from './observer-process.ts'
import type { Plan, WorldShape } from './plan.ts'
import { RecordChecker } from './record-checker.ts'
import { Inputs, Resource } from './resource.ts'
import { ServeProcess } from './serve-process.ts'
import { SessionLedger } from './session-ledger.ts'
import { Trace } from './trace.ts'
import { WorkChecker } from './work-checker.ts'
import type { WorldBase } from './world-base.ts'

const MARGIN_MS = 1_000

/** Settle times are short so that a restless world finds its balance between faults. */
function settingsOf(shape: WorldShape) {
  const { partitions, leaseTtlMs, fenced, drainPolicy, drainDeadlineMs, restartGraceMs } = shape
  return {
    ...{ partitions, leaseTtlMs, marginMs: MARGIN_MS, fenced, restartGraceMs },
    drain: { policy: drainPolicy, deadlineMs: drainDeadlineMs },
    acquire: { deadlineMs: 15_000 },
    settle: { firstGrantMs: 300, balanceMs: 500 },
  }
}

export class World {
  readonly plan: Plan
  readonly base: WorldBase
  readonly truth: EtcdTruth
  readonly work: WorkChecker
  readonly records: RecordChecker
  readonly maps: MapChecker
  readonly place: Workplace
  readonly members: MemberProcess[] = []
  readonly serves: ServeProcess[] = []
  readonly observers: ObserverProcess[] = []
  readonly accepts: AcceptLine[] = []
  readonly history: HistoryEvent[] = []
  readonly snapshots: EtcdSnapshot[] = []
  compactedTo = 0
  /** When operators last lifted their marks. */
  liftedAtMs = Number.NEGATIVE_INFINITY
  /** When an operator last tried to raise the incarnation. */
  raisedAtMs = Number.NEGATIVE_INFINITY
  /** Etcd dropped a live lease or forgot what it had acknowledged. */
  isHonest = true
  /** Etcd was restored and nobody has raised the incarnation since. */
  isRewound = false
  /** Owner of each partition by its last grant, to count changes of ownership. */
  ownershipChanges = 0
  /** Writes of each partition's record, for the bound on recoveries. */
  readonly recordWrites = new Map<number, number>()
  /** Most writes of one record in the recovery; set by the healing. */
  recoveryWritesMax = 0
  private readonly owners = new Map<number, string>()

  constructor(plan: Plan) {
    this.plan = plan
    const { shape } = plan
    const clock = createVirtualClock()
    const random = createSeededRandom(`world ${plan.seed}`)
    const nowMs = () => clock.monotonicMs()
    const group = groupName('orders')
    const keys = groupKeys(DEFAULT_KEY_PREFIX, group)
    const box = new BreachBox(nowMs)
    const ledger = new SessionLedger(MARGIN_MS)
    this.base = {
      ...{ group, keys, clock, random: random.fork('world'), ledger, box },
      settings: settingsOf(shape),
      etcd: createMemoryEtcd({ clock, random: random.fork('etcd') }),
      nats: createMemoryNats({ clock, random: random.fork('nats') }),
      orderOf: createRingOrder(),
      trace: new Trace(nowMs),
      effects: new Map(),
      isClosing: false,
    }
    this.truth = new EtcdTruth(keys)
    const { fenced, resources } = shape
    const rules = { fenced, resources, isHonest: () => this.isHonest }
    this.work = new WorkChecker(ledger, box, rules, nowMs)
    this.records = new RecordChecker(this.truth, ledger, this.work, box)
    this.maps = new MapChecker(this.truth, this.base)
    this.place = {
      resources: Array.from({ length: resources }, (_, index) => {
        return new Resource(`resource-${index + 1}`, fenced, clock, this.accepts)
      }),
      inputs: new Inputs(shape.partitions),
      work: this.work,
      workPauseMs: shape.workPauseMs,
      travel: { isSteady: false },
    }
    this.base.etcd.onChange((change) => this.changed(change))
    this.populate(shape)
  }

  get nowMs(): number {
    return this.base.clock.monotonicMs()
  }

  start(): void {
    for (const process of this.processes()) process.start()
  }

  *processes(): Iterable<MemberProcess | ServeProcess | ObserverProcess> {
    yield* this.members
    yield* this.serves
    yield* this.observers
  }

  addMember(name: string, member = name): MemberProcess {
    const process = new MemberProcess(name, member, this.base, this.place)
    this.members.push(process)
    return process
  }

  /** A service that can take an operator's order right now, the leader's first; null: none is up. */
  service(): GroupService | null {
    const up = this.serves.filter((serve) => serve.isUp && serve.served?.service.isKnown() === true)
    const best = up.find((serve) => serve.isLeader) ?? up[0]
    return best?.served?.service ?? null
  }

  phaseOf(partition: number): PartitionPhase {
    const known = this.truth.records.get(partition)
    if (known === undefined || known.record.phase === 'vacant') return 'vacant'
    const { record } = known
    if (record.phase === 'halted') return 'halted'
    if (!this.truth.isAlive(record.owner.member, record.owner.session)) return 'vacant'
    if (record.phase === 'revoking') return 'draining'
    return this.work.isWorking(partition, record) ? 'serving' : 'acquiring'
  }

  /** All data of the past: what etcd holds now is what stands. */
  restore(snapshot: EtcdSnapshot): void {
    this.records.restored()
    this.maps.lost()
    this.base.etcd.restore(snapshot)
    this.isHonest = false
    this.isRewound = true
    this.truth.reload(this.base.etcd.entries(this.base.keys.prefix))
    this.maps.reloaded()
    this.base.trace.note(null, `etcd is restored to revision ${snapshot.revision}`)
  }

  /** An empty etcd: the processes make the group anew, above its past, with no operator. */
  wipe(): void {
    // Unless the clock of whoever makes it was set back: then it is as if etcd had been restored.
    const mayBeBehind = this.plan.faults.some(({ kind }) => kind === 'wall-jump')
    if (mayBeBehind) this.records.restored()
    this.maps.lost()
    this.base.etcd.wipe()
    this.isHonest = false
    this.compactedTo = 0
    this.truth.reload([])
    this.base.trace.note(null, 'etcd is wiped')
  }

  /** What only an operator can end. */
  get needsRaise(): boolean {
    if (this.isRewound) return true
    return [...this.truth.records.values()].some(({ record }) => {
      return record.phase === 'halted' && haltedThrough(record) >= this.truth.incarnation
    })
  }

  private populate({ workers, serves, observers }: WorldShape): void {
    for (let index = 1; index <= workers; index += 1) this.addMember(`w${index}`)
    for (let index = 1; index <= serves; index += 1) {
      this.serves.push(new ServeProcess(`serve${index}`, this.base))
    }
    for (let index = 1; index <= observers; index += 1) {
      const process = new ObserverProcess(`observer${index}`, this.base)
      process.onChange = (observer) => this.maps.changed(process.name, observer)
      this.observers.push(process)
    }
  }

  private changed({ revision, events }: EtcdChange): void {
    for (const event of events) {
      this.maps.noteChange(event, revision)
      this.judge(event)
      this.truth.take(event)
      const history = historyEventOf(this.base.keys, event, this.nowMs)
      if (history !== null) this.history.push(history)
    }
  }

  private judge(event: WatchEvent): void {
    const { trace, keys } = this.base
    const key = event.type === 'put' ? event.entry.key : event.key
    const subject = keySubject(keys, key)
    if (subject.type !== 'partition') {
      const name = key.slice(keys.prefix.length)
      if (subject.type === 'incarnation') this.isRewound = false
      const value = event.type === 'delete' ? 'gone' : (event.entry.session ?? event.entry.value)
      if (subject.type !== 'rebalance') trace.note(null, `etcd: ${name} ${value}`)
      return
    }
    if (event.type === 'delete') return
    const { partition } = subject
    const after = decodePartitionRecord(event.entry.value, partition)
    const owner = after.phase === 'vacant' ? 'nobody' : after.owner.member
    const how = after.phase === 'owned' ? `, ${after.how}` : ''
    const move = after.phase === 'revoking' ? `, to ${after.move.to} (${after.move.reason})` : ''
    const author = this.base.ledger.authorOf(after.operation)
    const at = `${after.incarnation}.${after.generation}`
    trace.note(partition, `etcd: ${after.phase} ${at} ${owner}${how}${move} by ${author}`)
    this.records.changed(partition, after)
    this.recordWrites.set(partition, (this.recordWrites.get(partition) ?? 0) + 1)
    if (after.phase !== 'owned') return
    if (this.owners.get(partition) !== owner) this.ownershipChanges += 1
    this.owners.set(partition, owner)
  }
}
