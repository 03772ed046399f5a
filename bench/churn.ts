/**
 * Ownership churn, measured small: planned moves between members under work, against the limit that etcd
 * sets for the same commits. One run, one machine; compare ratios, not absolute times.
 *
 *   npm run bench [-- --partitions 1024 --members 4 --rounds 4 --json FILE]
 *
 * Tenure: in each round one member gives up everything and joins again; every move is a drain and a grant
 * committed by the owner. The pause of a partition is the time between the last work admitted at the old
 * owner and the first at the new one, less the work's own time (none here).
 * Limit: the same number of records, in the same batches, rewritten by compare-and-set with no logic, and
 * a watch that only counts; the best of 1, 4 and 8 batches in flight.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { random } from '../src/composition/connections.ts'
import { startWorker } from '../src/composition/start-worker.ts'
import type { Operation } from '../src/core/transaction.ts'
import { startEtcdServer, startNatsServer } from '../src/dev/servers.ts'
import { createEtcdStore } from '../src/etcd/etcd-store.ts'
import type { Store } from '../src/ports/store.ts'
import type { Worker } from '../src/runtime/worker-options.ts'

const { values } = parseArgs({
  options: {
    partitions: { type: 'string', default: '1024' },
    members: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '4' },
    json: { type: 'string' },
  },
})
const partitions = count('partitions', values.partitions, 100_000)
const members = Math.max(2, count('members', values.members, 64))
const rounds = count('rounds', values.rounds, 100)
const BATCH = 120

const folder = mkdtempSync(join(tmpdir(), 'tenure-bench-'))
const etcd = await startEtcdServer({ directory: join(folder, 'etcd') })
const nats = await startNatsServer({ directory: join(folder, 'nats') })
try {
  const limit = await measureLimit()
  const churn = await measureChurn()
  report(limit, churn)
} finally {
  await Promise.all([etcd.stop(), nats.stop()])
  rmSync(folder, { recursive: true, force: true })
}

/** Commits per second of records of the usual size, batched as Tenure batches them. */
async function measureLimit(): Promise<number> {
  const store = createEtcdStore({ endpoints: [etcd.endpoint] })
  let seen = 0
  const watch = store.watch('/limit/', 1, {
    events: (events) => {
      seen += events.length
    },
    progress: () => {},
    ended: () => {},
  })
  let best = 0
  let written = 0
  for (const inFlight of [1, 4, 8]) {
    const startMs = performance.now()
    await writeAll(store, inFlight, `${inFlight}`)
    written += partitions
    while (seen < written) await nextTurn()
    best = Math.max(best, (partitions / (performance.now() - startMs)) * 1000)
  }
  watch.close()
  await store.close()
  return best
}

async function writeAll(store: Store, inFlight: number, round: string): Promise<void> {
  let next = 0
  const send = async () => {
    while (next < partitions) {
      const from = next
      next += BATCH
      const success: Operation[] = []
      for (let p = from; p < Math.min(partitions, from + BATCH); p += 1) {
        const key = `/limit/${p}`
        const value = JSON.stringify({
          round,
          p,
          operation: random.operationId(),
          pad: 'x'.repeat(280),
        })
        success.push({
          type: 'transaction',
          compare: [{ type: 'value-equals', key: `${key}/never`, value: '' }],
          success: [],
          failure: [{ type: 'put', key, value }],
        })
      }
      const reply = await store.transact(
        { compare: [], success, failure: [] },
        { timeoutMs: 10_000 },
      )
      if (!reply.ok) throw new Error(reply.detail)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, send))
}

type Churn = { readonly moves: number; readonly movesPerSecond: number; readonly pauses: number[] }

async function measureChurn(): Promise<Churn> {
  const lastMs = new Map<number, number>()
  const lastOwner = new Map<number, string>()
  const pauses: number[] = []
  const joinGroup = (member: string): Promise<Worker> =>
    startWorker({
      group: 'churn',
      member,
      settings: { partitions, leaseTtlMs: 10_000 },
      etcd: { endpoints: [etcd.endpoint] },
      nats: { servers: [nats.url] },
      telemetry: { record: () => {} },
      signals: false,
      run: async (p) => {
        while (!p.draining.aborted) {
          await p.work(() => {
            const nowMs = performance.now()
            const before = lastMs.get(p.id)
            if (before !== undefined && lastOwner.get(p.id) !== member) pauses.push(nowMs - before)
            lastMs.set(p.id, nowMs)
            lastOwner.set(p.id, member)
          })
          await delay(20)
        }
      },
    })
  const workers = await Promise.all(Array.from({ length: members }, (_, i) => joinGroup(`m-${i}`)))
  const served = () =>
    workers.reduce((sum, w) => sum + w.partitions().filter((p) => p.status === 'serving').length, 0)
  while (served() < partitions) await delay(5)
  let moves = 0
  let movingMs = 0
  for (let round = 0; round < rounds; round += 1) {
    process.stderr.write(`\rround ${round + 1} of ${rounds} `)
    const [leaver] = workers.splice(0, 1)
    if (leaver === undefined) break
    moves += leaver.partitions().length
    const startMs = performance.now()
    await leaver.stop()
    while (served() < partitions) await nextTurn()
    movingMs += performance.now() - startMs
    const back = await joinGroup(leaver.member)
    workers.push(back)
    await back.ready
  }
  process.stderr.write('\n')
  await Promise.all(workers.map((worker) => worker.stop()))
  return { moves, movesPerSecond: (moves / movingMs) * 1000, pauses }
}

function report(limitPerSecond: number, churn: Churn): void {
  const sorted = [...churn.pauses].sort((a, b) => a - b)
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
  const result = {
    machine: {
      cpus: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      node: process.version,
    },
    partitions,
    members,
    rounds,
    moves: churn.moves,
    movesPerSecond: Math.round(churn.movesPerSecond),
    limitPerSecond: Math.round(limitPerSecond),
    ratio: Number((churn.movesPerSecond / limitPerSecond).toFixed(3)),
    pauseMs: { samples: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) },
  }
  console.log(JSON.stringify(result, null, 2))
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`)
}

function count(name: string, text: string, max: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  console.error(`--${name} must be a whole number from 1 to ${max}, not "${text}"`)
  process.exit(2)
}
