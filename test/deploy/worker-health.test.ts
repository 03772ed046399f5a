/**
 * Plan: the listener of a worker through its life: alive and not ready while it looks for etcd, ready with
 * a session, not ready but alive during a drain, gone at the end; metrics; a taken port.
 */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findFreePorts, startServerProcess } from '../../src/dev/servers-process.ts'
import { eventually } from '../support/eventually.ts'
import { type CleanUp, startEtcd, startNats, temporaryFolder } from '../support/servers.ts'
import { REPOSITORY } from './image.ts'

/** Drains for as long as the file `go` is missing. */
const SLOW_WORKER = `
import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
export const worker = {
  release: async () => {
    writeFileSync('draining', '')
    while (!existsSync('go')) await wait(20)
  },
}
`
const TIMEOUT_MS = 30_000

async function startWorkerProcess(
  cleanUp: CleanUp,
  servers: { readonly etcd: string; readonly nats: string; readonly port: number },
) {
  const folder = await temporaryFolder(cleanUp)
  writeFileSync(join(folder, 'worker.js'), SLOW_WORKER)
  const url = `http://127.0.0.1:${servers.port}`
  const status = async (path: string) => (await fetch(url + path).catch(() => null))?.status ?? null
  const server = await startServerProcess({
    name: 'worker',
    program: process.execPath,
    args: [
      ...['--import', import.meta.resolve('tsx'), join(REPOSITORY, 'src/main.ts')],
      ...['worker', './worker.js'],
    ],
    environment: {
      PATH: process.env['PATH'],
      TENURE_GROUP: 'orders',
      TENURE_MEMBER: 'orders-0',
      TENURE_PARTITIONS: '4',
      TENURE_ETCD_ENDPOINTS: servers.etcd,
      TENURE_NATS_SERVERS: servers.nats,
      TENURE_HEALTH_PORT: String(servers.port),
    },
    workingFolder: folder,
    ports: [],
    logFile: join(folder, 'worker.log'),
    isReady: async () => (await status('/livez')) === 200,
  })
  cleanUp.after(() => server.kill())
  const text = async (path: string) => (await fetch(url + path)).text()
  const terminate = () => void process.kill(server.pid(), 'SIGTERM')
  return { folder, server, status, text, terminate }
}

test('worker with a health port, until etcd is there, is alive and not ready', async (t) => {
  const [port = 0, nowhere = 0] = await findFreePorts(2)
  const nats = await startNats(t)
  const worker = await startWorkerProcess(t, {
    etcd: `127.0.0.1:${nowhere}`,
    nats: nats.url,
    port,
  })
  assert.equal(await worker.status('/readyz'), 503)
  assert.match(await worker.text('/readyz'), /this worker is starting/)
  assert.equal(await worker.status('/nothing'), 404)
})

test('worker with a health port, through a drain, is alive and not ready, then gone', async (t) => {
  const [etcd, nats, [port = 0]] = await Promise.all([startEtcd(t), startNats(t), findFreePorts(1)])
  const worker = await startWorkerProcess(t, { etcd: etcd.endpoint, nats: nats.url, port })
  await eventually(async () => (await worker.status('/readyz')) === 200, {
    timeoutMs: TIMEOUT_MS,
    what: 'ready',
  })
  await eventually(
    async () => {
      const text = await worker.text('/metrics')
      const owned = /^tenure_member_partitions_owned\{.*member="orders-0"\} 4$/m
      const left = /^tenure_lease_left_seconds\{.*member="orders-0"\} [0-9]/m
      return owned.test(text) && left.test(text)
    },
    { timeoutMs: TIMEOUT_MS, what: 'the metrics tell four partitions and a lease with time left' },
  )

  worker.terminate()
  await eventually(() => existsSync(join(worker.folder, 'draining')), {
    timeoutMs: TIMEOUT_MS,
    what: 'the drain has begun',
  })
  assert.equal(await worker.status('/readyz'), 503)
  assert.match(await worker.text('/readyz'), /this worker is stopping/)
  assert.equal(await worker.status('/livez'), 200)
  assert.equal(worker.server.exitCode(), null)

  writeFileSync(join(worker.folder, 'go'), '')
  await eventually(() => worker.server.exitCode() !== null, {
    timeoutMs: TIMEOUT_MS,
    what: 'the process ends',
  })
  assert.equal(worker.server.exitCode(), 0)
  assert.equal(await worker.status('/livez'), null)
})
