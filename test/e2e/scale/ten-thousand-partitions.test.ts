import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { type RequestCounter, startRequestCounter } from '../../support/request-counter.ts'
import { startEtcd, startNats } from '../../support/servers.ts'
import { record, serving, startMember } from './members.ts'

const PARTITIONS = 10_000
const REQUESTS_MAX = (3 * PARTITIONS) / 100 + 50
const TIMEOUT_MS = 90_000

// Plan: two members, each with a counting proxy of its own, so that every request to etcd is seen. The
// first takes all partitions, hands all to the second, which then loses its way to etcd for good.
test('10,000 partitions: cold start, hand-over and recovery, each with few requests', async (t) => {
  const etcd = await startEtcd(t)
  const nats = await startNats(t)
  const ways: RequestCounter[] = []
  const telemetry = record()
  const worked = new Map<number, number>()
  const join = async (member: string) => {
    const way = await startRequestCounter(t, etcd.clientPort)
    ways.push(way)
    const settings = { partitions: PARTITIONS, leaseTtlMs: 10_000, marginMs: 2000 }
    const shared = { group: 'large', nats: nats.url, settings, telemetry, worked }
    const worker = await startMember({ ...shared, member, etcd: way.endpoint })
    t.after(() => worker.stop({ force: true }).catch(() => {}))
    await worker.ready
    return { worker, way }
  }
  const requests = () => ways.reduce((total, way) => total + way.count(), 0)
  const spent = (since: number, what: string) => {
    const used = requests() - since
    const methods = JSON.stringify(ways.map((way) => way.byMethod()))
    t.diagnostic(`${what}: ${used} requests`)
    assert.ok(used <= REQUESTS_MAX, `${what}: ${used} requests of ${REQUESTS_MAX}: ${methods}`)
  }
  const allAt = (generation: number) => () =>
    worked.size === PARTITIONS && [...worked.values()].every((at) => at === generation)

  const first = await join('m-1')
  await eventually(allAt(1), { timeoutMs: TIMEOUT_MS, what: 'work in every partition' })
  spent(0, 'cold start')

  const second = await join('m-2')
  let before = requests()
  await first.worker.stop()
  await eventually(allAt(2), { timeoutMs: TIMEOUT_MS, what: 'work at the second member' })
  spent(before, 'full hand-over')
  assert.equal(telemetry.counts.get('lost') ?? 0, 0)
  assert.equal(serving(second.worker), PARTITIONS)

  const third = await join('m-3')
  before = requests()
  await second.way.close()
  await eventually(allAt(3), { timeoutMs: TIMEOUT_MS, what: 'recovery at the third member' })
  spent(before, 'recovery')
  assert.equal(serving(third.worker), PARTITIONS)
  assert.equal(serving(second.worker), 0)
})
