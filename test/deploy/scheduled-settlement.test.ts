/**
 * Plan: the settlement example in worker processes on real servers. One is killed, another paused, each
 * with a settlement under way that arrives only after the next owner has sealed.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startServerProcess } from '../../src/dev/servers-process.ts'
import { eventually } from '../support/eventually.ts'
import { startEtcd, startNats, temporaryFolder } from '../support/servers.ts'
import { bundleExample } from './bundle-example.ts'
import { SettlementService } from './settlement-service.ts'

const EVERY_MS = 400
const TENANTS = Array.from({ length: 10 }, (_, index) => `tenant-${index}`)
const SOON = { timeoutMs: 40_000 }

const START = `
import { startWorker } from 'tenure'
import { worker } from './deploy/examples/scheduled-settlement.js'
const started = await startWorker({ group: 'settlement', ...worker })
await started.done`

test('scheduled settlement: owners killed and paused in the midst, each tenant is settled at each due time once', async (t) => {
  const service = new SettlementService(TENANTS)
  await service.listen(t)
  const [etcd, nats, folder, program] = await Promise.all([
    startEtcd(t),
    startNats(t),
    temporaryFolder(t),
    bundleExample(t, 'settlement', START),
  ])
  const start = async (member: string) => {
    const worker = await startServerProcess({
      ...{ name: member, program: process.execPath, args: [program], ports: [] },
      environment: {
        ...process.env,
        TENURE_MEMBER: member,
        TENURE_PARTITIONS: '4',
        TENURE_LEASE_TTL: '2s',
        TENURE_MARGIN: '400ms',
        TENURE_ETCD_ENDPOINTS: etcd.endpoint,
        TENURE_NATS_SERVERS: nats.url,
        SETTLEMENT_URL: `${service.url}/${member}`,
        SETTLEMENT_EVERY_MS: String(EVERY_MS),
      },
      logFile: join(folder, `${member}.log`),
      isReady: async () => true,
    })
    t.after(() => worker.stop())
    return worker
  }
  const settledMore = (times: number) => {
    const before = new Map(TENANTS.map((tenant) => [tenant, service.settlementsOf(tenant).length]))
    const isDone = () =>
      TENANTS.every(
        (tenant) => service.settlementsOf(tenant).length >= (before.get(tenant) ?? 0) + times,
      )
    return eventually(isDone, { ...SOON, what: `${times} more settlements of each tenant` })
  }

  const first = await start('w-1')
  await settledMore(2)

  const ofKilled = service.holdBack('w-1')
  const [underWay] = await eventually(() => ofKilled.length > 0 && ofKilled, {
    ...SOON,
    what: 'a settlement under way',
  })
  assert.ok(underWay !== undefined)
  await first.kill()
  const second = await start('w-2')
  const sealed = (partition: number, member: string) => () => service.sealedBy(partition) === member
  await eventually(sealed(underWay.partition, 'w-2'), { ...SOON, what: 'sealed by w-2' })
  service.release()
  await settledMore(2)
  assert.ok(service.refused.some(({ member }) => member === 'w-1'))

  const third = await start('w-3')
  const ofPaused = service.holdBack('w-2')
  const [late] = await eventually(() => ofPaused.length > 0 && ofPaused, {
    ...SOON,
    what: 'a settlement under way',
  })
  assert.ok(late !== undefined)
  second.pause()
  await eventually(sealed(late.partition, 'w-3'), { ...SOON, what: 'sealed by w-3' })
  service.release()
  await eventually(() => service.refused.some(({ member }) => member === 'w-2'), {
    ...SOON,
    what: 'the late settlement refused',
  })
  second.resume()
  await settledMore(2)
  await Promise.all([second.stop(), third.stop()])

  for (const tenant of TENANTS) {
    const dueTimes = service.settlementsOf(tenant)
    const [from = 0] = dueTimes
    assert.deepEqual(
      dueTimes,
      dueTimes.map((_, index) => from + index * EVERY_MS),
      `${tenant}: doubled, missing or out of order`,
    )
  }
})
