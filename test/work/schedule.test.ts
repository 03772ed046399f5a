/** Plan: scheduled jobs on virtual time, under grants that the test makes and ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTenureError, isTenureError } from '../../src/core/tenure-error.ts'
import type { Token } from '../../src/core/token.ts'
import { createVirtualClock, type VirtualClock } from '../../src/testing/virtual-clock.ts'
import { everyInterval } from '../../src/work/due.ts'
import {
  createScheduledJobs,
  type DueRun,
  type ScheduledJob,
  type ScheduledJobsOptions,
} from '../../src/work/schedule.ts'
import { FencedBook } from './fenced-book.ts'
import { serve } from './hand-grant.ts'

const EVERY_MS = 10_000

/** A fenced book that also keeps the due time of each tenant's last run. */
class SettlementBook {
  readonly book = new FencedBook()
  readonly last = new Map<string, number | null>()

  constructor(tenants: readonly string[]) {
    for (const tenant of tenants) this.last.set(tenant, null)
  }

  jobs(): readonly ScheduledJob[] {
    return [...this.last].map(([key, lastDueMs]) => ({ key, lastDueMs }))
  }

  settle({ job, dueMs, idempotencyKey, token }: DueRun<ScheduledJob>): void {
    this.book.commit(token, { key: job.key, sequence: dueMs, idempotencyKey, checkpoint: 0 })
    this.last.set(job.key, Math.max(dueMs, this.last.get(job.key) ?? 0))
  }

  /** Due times after the start that were settled, per tenant. */
  settled(startMs: number): Record<string, number[]> {
    const times: Record<string, number[]> = {}
    for (const { key, sequence } of this.book.entries) {
      times[key] = [...(times[key] ?? []), sequence - startMs]
    }
    return times
  }
}

function jobsOf(
  clock: VirtualClock,
  settlements: SettlementBook,
  options: Partial<ScheduledJobsOptions<ScheduledJob>> = {},
) {
  const plan = everyInterval({ everyMs: EVERY_MS, fromMs: clock.wallMs() + 1 })
  return createScheduledJobs<ScheduledJob>(
    {
      partitions: 1,
      seal: (token: Token) => settlements.book.seal(token),
      load: () => settlements.jobs(),
      nextDueMs: (_job, afterMs) => plan(afterMs),
      run: (due) => settlements.settle(due),
      ...options,
    },
    clock,
  )
}

function startOf(clock: VirtualClock): number {
  return Math.ceil((clock.wallMs() + 1) / EVERY_MS) * EVERY_MS
}

test('scheduled jobs: each tenant is settled at its due times, none before, each once', async () => {
  const clock = createVirtualClock()
  const settlements = new SettlementBook(['a', 'b'])
  const firstMs = startOf(clock)
  const served = await serve(jobsOf(clock, settlements), 0, 1)
  await clock.advance(firstMs - clock.wallMs() - 1)
  assert.deepEqual(settlements.book.entries, [])
  await clock.advance(1)
  assert.deepEqual(settlements.settled(firstMs), { a: [0], b: [0] })
  await clock.advance(3 * EVERY_MS)
  const times = [0, 10_000, 20_000, 30_000]
  assert.deepEqual(settlements.settled(firstMs), { a: times, b: times })
  assert.deepEqual(settlements.book.replays, [])
  await served.handOver()
})

test('scheduled jobs: an owner lost in the midst, its late commit is refused and the next runs the due time once', async () => {
  const clock = createVirtualClock()
  const settlements = new SettlementBook(['a'])
  const firstMs = startOf(clock)
  const handlers = jobsOf(clock, settlements, {
    run: async (due) => {
      // It takes a second to compute; the owner is lost meanwhile, and commits all the same.
      if (due.token.generation === 1) {
        await new Promise<void>((resolve) => void clock.schedule(1000, resolve))
      }
      settlements.settle(due)
    },
  })
  const first = await serve(handlers, 0, 1)
  await clock.advance(firstMs - clock.wallMs() + 500)
  first.lose()
  const second = await serve(handlers, 0, 2)
  await clock.advance(5000)
  assert.equal(settlements.book.refusals, 1)
  assert.equal(await first.ended, null)
  assert.deepEqual(settlements.settled(firstMs), { a: [0] })
  assert.equal(settlements.book.entries[0]?.token.generation, 2)
  await second.handOver()
})

test('scheduled jobs: an owner lost after its commit, the next does not run the due time again', async () => {
  const clock = createVirtualClock()
  const settlements = new SettlementBook(['a'])
  const firstMs = startOf(clock)
  let runs = 0
  const handlers = jobsOf(clock, settlements, {
    run: async (due) => {
      runs += 1
      settlements.settle(due)
      // The answer to the commit never arrives.
      if (due.token.generation === 1) await new Promise(() => {})
    },
  })
  const first = await serve(handlers, 0, 1)
  await clock.advance(firstMs - clock.wallMs() + 10)
  first.lose()
  const second = await serve(handlers, 0, 2)
  await clock.advance(EVERY_MS)
  assert.deepEqual(settlements.settled(firstMs), { a: [0, EVERY_MS] })
  assert.equal(runs, 2)
  await second.handOver()
})

test('scheduled jobs: times missed while nobody ran are run each, or only the latest', async () => {
  for (const [missed, expected] of [
    ['each', [0, 10_000, 20_000, 30_000]],
    ['latest', [0, 30_000]],
  ] as const) {
    const clock = createVirtualClock()
    const settlements = new SettlementBook(['a'])
    const firstMs = startOf(clock)
    const handlers = jobsOf(clock, settlements, { missed })
    const first = await serve(handlers, 0, 1)
    await clock.advance(firstMs - clock.wallMs())
    await clock.run(first.handOver())
    await clock.advance(3 * EVERY_MS + 1)
    const second = await serve(handlers, 0, 2)
    await clock.advance(100)
    assert.deepEqual(settlements.settled(firstMs), { a: expected }, missed)
    await clock.run(second.handOver())
  }
})

test('scheduled jobs: one that fails is tried again after a wait, and holds back no other', async () => {
  const clock = createVirtualClock()
  const settlements = new SettlementBook(['a', 'b'])
  const firstMs = startOf(clock)
  const failures: string[] = []
  const handlers = jobsOf(clock, settlements, {
    backOff: { firstMs: 1000, maxMs: 2000 },
    onFailure: ({ due, error }) => failures.push(`${due.job.key} ${String(error)}`),
    run: (due) => {
      if (due.job.key === 'a' && failures.length < 2) throw new Error('no')
      settlements.settle(due)
    },
  })
  const served = await serve(handlers, 0, 1)
  await clock.advance(firstMs - clock.wallMs() + 1)
  assert.deepEqual(settlements.settled(firstMs), { b: [0] })
  await clock.advance(2998)
  assert.deepEqual(settlements.settled(firstMs), { b: [0] })
  await clock.advance(2)
  assert.deepEqual(settlements.settled(firstMs), { b: [0], a: [0] })
  assert.deepEqual(failures, ['a Error: no', 'a Error: no'])
  await served.handOver()
})

test('scheduled jobs: tenants that come and go are seen at the next load', async () => {
  const clock = createVirtualClock()
  const settlements = new SettlementBook(['a'])
  const firstMs = startOf(clock)
  const served = await serve(jobsOf(clock, settlements, { reloadMs: 1000 }), 0, 1)
  await clock.advance(firstMs - clock.wallMs())
  settlements.last.delete('a')
  settlements.last.set('b', firstMs)
  await clock.advance(EVERY_MS)
  assert.deepEqual(settlements.settled(firstMs), { a: [0], b: [EVERY_MS] })
  await served.handOver()
})

test('scheduled jobs: refused by the fence, a grant that goes on is told what was sealed', async () => {
  const clock = createVirtualClock()
  const settlements = new SettlementBook(['a'])
  const highest = { incarnation: 1, generation: 9 }
  const handlers = jobsOf(clock, settlements, {
    run: () => {
      throw createTenureError('fence-refused', 'stale', { details: { highest } })
    },
  })
  const served = await serve(handlers, 0, 1)
  await clock.advance(startOf(clock) - clock.wallMs() + 5000)
  assert.ok(isTenureError(await served.ended, 'fence-refused'))
  assert.deepEqual(served.grant.refusals, [highest])
})
