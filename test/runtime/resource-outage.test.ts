/**
 * Plan: workers on the in-memory etcd whose resource is away for a minute, for `acquire` or for `run`.
 * When it is back, every partition is worked on again within the bound of L4, whatever was tried before.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupName, memberName, type PartitionId } from '../../src/core/ids.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { createWorker } from '../../src/runtime/create-worker.ts'
import { createMemoryNats } from '../../src/testing/index.ts'
import { KEYS, ServedGroupWorld } from './served-group-world.ts'

const PARTITIONS = 6
const TTL_MS = 2000
const L4_MS = 2 * TTL_MS + 5000
const AWAY_MS = 60_000

class OutageWorld extends ServedGroupWorld {
  readonly nats = createMemoryNats({ clock: this.clock, random: this.random.fork('nats') })
  /** Which handler finds the resource away. */
  away: 'acquire' | 'run' | null = null
  readonly failures = new Map<string, number>()
  /** When each partition was worked on last, on the clock of the world. */
  readonly workedAtMs = new Map<PartitionId, number>()

  constructor() {
    const settle = { firstGrantMs: 0, balanceMs: 100 }
    super({ partitions: PARTITIONS, leaseTtlMs: TTL_MS, marginMs: 400, settle })
  }

  async worker(name: string): Promise<void> {
    const clock = this.clock.createProcess()
    const need = (handler: 'acquire' | 'run') => {
      if (this.away === handler) throw new Error('the resource is away')
    }
    const worker = await this.clock.run(
      createWorker<void>({
        ...{ group: groupName('orders'), member: memberName(name), keys: KEYS, clock },
        store: this.etcd.connect(name, { clock }),
        broadcast: this.nats.connect(name, { clock }),
        random: this.random.fork(name),
        telemetry: { record: (event) => this.count(event) },
        orderOf: this.orderOf,
        settings: this.settings,
        acquire: () => need('acquire'),
        run: async (p) => {
          while (!p.draining.aborted) {
            need('run')
            await p.work(() => this.workedAtMs.set(p.id, this.clock.monotonicMs()))
            await new Promise<void>((resolve) => clock.schedule(100, resolve))
          }
        },
        close: async () => {},
      }),
    )
    await this.clock.run(worker.ready)
  }

  private count({ type }: TelemetryEvent): void {
    this.failures.set(type, (this.failures.get(type) ?? 0) + 1)
  }
}

for (const handler of ['acquire', 'run'] as const) {
  test(`a resource that is away for long, for ${handler}: all partitions are worked on soon after it is back`, async () => {
    const world = new OutageWorld()
    await world.worker('w-1')
    await world.worker('w-2')
    await world.clock.advance(5000)
    assert.equal(world.workedAtMs.size, PARTITIONS)
    world.away = handler
    // For `acquire` the two lose what they hold, and come anew.
    if (handler === 'acquire') world.etcd.setAvailability('down')
    await world.clock.advance(TTL_MS * 3)
    if (handler === 'acquire') world.etcd.setAvailability('up')
    await world.clock.advance(AWAY_MS)
    const event = handler === 'acquire' ? 'acquire-failed' : 'run-failed'
    const failures = world.failures.get(event) ?? 0
    assert.ok(failures > 50, `${failures} failures`)
    // Handed from one to the other without a wait, a partition would go round without end.
    assert.ok(failures < 400, `${failures} failures`)
    const backAtMs = world.clock.monotonicMs()
    world.away = null
    await world.clock.advance(L4_MS)
    for (const [partition, atMs] of world.workedAtMs) {
      assert.ok(atMs > backAtMs, `partition ${partition} stands still`)
    }
  })
}
