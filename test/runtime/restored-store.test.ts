/**
 * Plan: workers with a fenced resource on the in-memory etcd. It is restored to the past under workers
 * that remember and under ones that do not, to before a raised incarnation, and wiped; a resource refuses
 * in the ordinary way too, which halts nothing.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeGroupConfig } from '../../src/core/group-config.ts'
import { groupName, memberName, type PartitionId } from '../../src/core/ids.ts'
import { decodePartitionRecord } from '../../src/core/partition-record.ts'
import { comparePositions, type Position } from '../../src/core/token.ts'
import { LedgerBook } from '../../src/dev/ledger-book.ts'
import { type AcceptLine, isAccepted } from '../../src/evidence/accept-log.ts'
import { verifyAccepts } from '../../src/evidence/verify-accepts.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { createWorker } from '../../src/runtime/create-worker.ts'
import { createGroupService, type GroupService } from '../../src/runtime/group-service.ts'
import { RewindWatch } from '../../src/runtime/rewind-watch.ts'
import type { Partition } from '../../src/runtime/worker-options.ts'
import { createMemoryNats } from '../../src/testing/index.ts'
import { KEYS, ServedGroupWorld } from './served-group-world.ts'

const BY = { by: 'ann', why: 'restored' }
const GROUP = groupName('orders')
const PARTITIONS = 6

type Alarm = Extract<TelemetryEvent, { readonly type: 'alarm' }>

class FencedWorld extends ServedGroupWorld {
  readonly nats = createMemoryNats({ clock: this.clock, random: this.random.fork('nats') })
  readonly book = new LedgerBook()
  readonly accepts: AcceptLine[] = []
  readonly alarms: Alarm[] = []
  private sequence = 0

  constructor() {
    super({ partitions: PARTITIONS, fenced: true, settle: { firstGrantMs: 0, balanceMs: 100 } })
  }

  async worker(name: string) {
    const clock = this.clock.createProcess()
    const worker = await this.clock.run(
      createWorker<void>({
        ...{ group: GROUP, member: memberName(name), keys: KEYS, clock },
        store: this.etcd.connect(name, { clock }),
        broadcast: this.nats.connect(name, { clock }),
        random: this.random.fork(name),
        telemetry: {
          record: (event) => {
            if (event.type === 'alarm') this.alarms.push(event)
          },
        },
        orderOf: this.orderOf,
        settings: this.settings,
        acquire: (p) => this.seal(p),
        run: async (p) => {
          while (!p.draining.aborted) {
            await p.work(() => this.apply(p))
            await new Promise<void>((resolve) => clock.schedule(200, resolve))
          }
        },
        close: async () => {},
      }),
    )
    await this.clock.run(worker.ready)
    return { ...worker, process: clock, worker }
  }

  /** A serve process, put together as the composition does. */
  async serving(name = 'serve'): Promise<GroupService> {
    const serve = await this.serve(name)
    const telemetry = { record: () => {} }
    const rewinds = new RewindWatch({ ...serve, telemetry })
    return createGroupService({
      ...serve,
      alarms: () => rewinds.alarms(),
      highestIncarnation: () => rewinds.highestKnown(),
    })
  }

  seal(p: Partition): void {
    const atMs = this.clock.monotonicMs()
    const outcome = this.book.seal(p.token)
    if (outcome.ok) this.accepts.push({ type: 'sealed', token: p.token, atMs })
    else {
      p.refused(outcome.highest)
      throw new Error('refused to seal')
    }
  }

  apply(p: Partition): void {
    const atMs = this.clock.monotonicMs()
    this.sequence += 1
    const result = this.book.apply(p.token, this.sequence)
    const line = {
      type: 'effect',
      token: p.token,
      input: null,
      beginMs: atMs,
      endMs: atMs,
    } as const
    this.accepts.push({ ...line, outcome: result.outcome })
    if (result.outcome !== 'refused' || result.highest === null) return
    p.refused(result.highest)
    throw new Error('refused to apply')
  }

  /** Every partition has an effect under the incarnation, or a later one, from now on. */
  async worksUnder(incarnation: number): Promise<void> {
    const from = this.accepts.length
    const works = () => {
      const done = new Set<PartitionId>()
      for (const line of this.accepts.slice(from)) {
        if (line.type !== 'effect' || line.outcome !== 'applied') continue
        if (line.token.incarnation >= incarnation) done.add(line.token.partition)
      }
      return done.size === PARTITIONS
    }
    await this.until(works, `works under ${incarnation}`, 60_000)
  }

  records() {
    return this.etcd.entries(`${KEYS.prefix}partitions/`).map(({ key, value }) => {
      return decodePartitionRecord(value, Number(key.slice(-6)))
    })
  }

  incarnation(): number {
    return Number(this.etcd.entries(KEYS.incarnation)[0]?.value ?? 0)
  }

  /** Each partition is granted that many times more: its owner is disabled and enabled again. */
  async grantAnew({ admin }: GroupService, times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) {
      const before = this.generations()
      assert.ok((await this.clock.run(admin.setDisabled(null, BY))).ok)
      await this.until(() => this.records().every(({ phase }) => phase === 'vacant'), 'vacant')
      assert.ok((await this.clock.run(admin.clearDisabled(null))).ok)
      await this.until(
        () => this.generations().every((now, index) => now > (before[index] ?? 0)),
        'granted anew',
      )
    }
  }

  generations(): readonly number[] {
    return this.records().map(({ generation }) => generation)
  }

  highest(): readonly Position[] {
    return Array.from({ length: PARTITIONS }, (_, partition) => {
      return this.book.highest(partition) ?? { incarnation: 0, generation: 0 }
    })
  }

  assertNothingStale(): void {
    const accepted = this.accepts.filter(isAccepted)
    assert.deepEqual(verifyAccepts(accepted, new Set(), () => true).violations, [])
  }
}

function isAbove(now: readonly Position[], before: readonly Position[]): boolean {
  return now.every((position, index) => {
    const known = before[index]
    return known !== undefined && comparePositions(position, known) > 0
  })
}

test('a store restored under workers that remember, halts with an alarm until raised', async () => {
  const world = new FencedWorld()
  await world.worker('a')
  await world.worker('b')
  const service = await world.serving()
  await world.worksUnder(1)
  const incarnation = world.incarnation()
  const snapshot = world.etcd.snapshot()
  await world.grantAnew(service, 4)
  await world.worksUnder(incarnation)
  const before = world.highest()
  world.etcd.restore(snapshot)
  await world.until(() => world.alarms.length >= 2, 'each worker says so', 60_000)
  assert.ok(world.alarms.every(({ code }) => code === 'store-rewound'))
  await world.until(() => service.view.summary().alarms.length > 0, 'the service says so', 60_000)
  assert.match(service.view.summary().alarms[0] ?? '', new RegExp(`above ${incarnation} with`))
  // Nobody grants anything, however long it takes.
  const standing = world.generations()
  await world.clock.advance(120_000)
  assert.deepEqual(world.generations(), standing)
  assert.equal(service.view.summary().alarms.length, 1)

  const raised = await world.clock.run(service.admin.raiseIncarnation(BY))
  assert.ok(raised.ok && raised.value > incarnation)
  await world.worksUnder(raised.value)
  assert.deepEqual(service.view.summary().alarms, [])
  assert.ok(isAbove(world.highest(), before))
  world.assertNothingStale()
})

test('a store restored under new workers, what resources refuse halts it and says what they saw', async () => {
  const world = new FencedWorld()
  const a = await world.worker('a')
  await world.worksUnder(1)
  const snapshot = world.etcd.snapshot()
  const first = await world.serving()
  const later = await world.clock.run(first.admin.raiseIncarnation(BY))
  assert.ok(later.ok)
  await world.worksUnder(later.value)
  const before = world.highest()
  a.process.kill()
  world.etcd.restore(snapshot)
  assert.ok(world.incarnation() < later.value)

  await world.worker('b')
  const service = await world.serving('serve-2')
  await world.until(() => service.view.summary().halted === PARTITIONS, 'all halted', 120_000)
  assert.ok(world.alarms.every(({ code }) => code === 'fence-ahead'))
  assert.match(service.view.summary().alarms[0] ?? '', new RegExp(`above ${later.value}$`))
  assert.match(service.view.partition(0).why ?? '', new RegExp(`above ${later.value}$`))
  const raised = await world.clock.run(service.admin.raiseIncarnation(BY))
  assert.ok(raised.ok && raised.value > later.value)
  await world.worksUnder(raised.value)
  await world.until(() => service.view.summary().halted === 0, 'seen by the service')
  assert.deepEqual(service.view.summary().alarms, [])
  assert.ok(world.records().every((record) => !('highest' in record)))
  assert.ok(isAbove(world.highest(), before))
  world.assertNothingStale()
})

test('a store that is wiped, works at once under a new incarnation with its settings', async () => {
  const world = new FencedWorld()
  await world.worker('a')
  await world.worker('b')
  const service = await world.serving()
  await world.worksUnder(1)
  await world.grantAnew(service, 1)
  const incarnation = world.incarnation()
  const config = encodeGroupConfig(service.view.config())
  const before = world.highest()
  world.etcd.wipe()
  await world.worksUnder(incarnation + 1)
  assert.equal(world.etcd.entries(KEYS.config)[0]?.value, config)
  assert.deepEqual(world.alarms, [])
  assert.deepEqual(service.view.summary().alarms, [])
  assert.ok(isAbove(world.highest(), before))
  world.assertNothingStale()
})

test('settings deleted from a store that did not go back, stay deleted', async () => {
  const world = new FencedWorld()
  await world.worker('a')
  await world.worksUnder(1)
  const store = world.etcd.connect('operator')
  const success = [{ type: 'delete', key: KEYS.config }] as const
  await world.clock.run(store.transact({ compare: [], success, failure: [] }, { timeoutMs: 1000 }))
  await world.clock.advance(60_000)
  assert.deepEqual(world.etcd.entries(KEYS.config), [])
})

test('a late write refused in the ordinary way, or by a resource that saw less, halts nothing', async () => {
  const world = new FencedWorld()
  const a = await world.worker('a')
  await world.worker('b')
  const incarnation = world.incarnation()
  await world.until(() => a.worker.partitions().length > 0, 'a owns some')
  await world.worksUnder(1)
  a.process.pause()
  await world.until(
    () => world.highest().every(({ generation }) => generation >= 1) && world.counts()['b'] === 6,
    'b owns all',
    60_000,
  )
  await world.worksUnder(1)
  a.process.resume()
  await world.worksUnder(1)
  assert.ok(world.records().every(({ phase }) => phase !== 'halted'))
  assert.deepEqual(world.alarms, [])
  assert.equal(world.incarnation(), incarnation)
  world.assertNothingStale()
})
