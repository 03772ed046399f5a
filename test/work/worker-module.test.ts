/**
 * Plan: `tenure worker` on real servers with modules that open something of their own: the process ends
 * within a bound after SIGTERM, under its own exit code, whether the module closes that, forgets to, or
 * never comes to an end with it.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startServerProcess } from '../../src/dev/servers-process.ts'
import { eventually } from '../support/eventually.ts'
import { startEtcd, startNats, temporaryFolder } from '../support/servers.ts'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const CLOSE_MS = 5000
/** Beyond what the command itself allows: a loaded machine's time for a drain and an exit. */
const SPARE_MS = 10_000
const STARTED = { timeoutMs: 40_000 }

const [etcd, nats] = await Promise.all([
  startEtcd({ after }),
  startNats({ after }, { jetStream: true }),
])

/** Reads the stream in `run`, over streams that only `close` would close. */
const STREAMS_MODULE = `
import { writeFileSync } from 'node:fs'
import { connectStreams, ensureWorkStreams, partitionedConsumer } from '${join(REPOSITORY, 'src/composition/work.ts')}'
const streams = await connectStreams()
await ensureWorkStreams(streams, { prefix: 'orders' })
let serving = 0
export const worker = {
  telemetry: { record: ({ type }) => type === 'serving' && (serving += 1) === 4 && writeFileSync('serving', '') },
  ...partitionedConsumer({ mode: 'durable', streams, prefix: 'orders', handle: () => {} }),
}
`

let groups = 0

async function startModule(t: TestContext, module: string, etcdEndpoint = etcd.endpoint) {
  const folder = await temporaryFolder(t)
  writeFileSync(join(folder, 'worker.mjs'), module)
  groups += 1
  const worker = await startServerProcess({
    name: 'worker',
    program: process.execPath,
    args: [
      ...['--import', import.meta.resolve('tsx'), join(REPOSITORY, 'src/main.ts')],
      ...['worker', './worker.mjs'],
    ],
    environment: {
      PATH: process.env['PATH'],
      TENURE_GROUP: `orders-${groups}`,
      TENURE_MEMBER: 'orders-0',
      TENURE_PARTITIONS: '4',
      TENURE_ETCD_ENDPOINTS: etcdEndpoint,
      TENURE_NATS_SERVERS: nats.url,
    },
    ...{ workingFolder: folder, ports: [], logFile: join(folder, 'worker.log') },
    isReady: async () => true,
  })
  t.after(() => worker.kill())
  const has = (name: string) => existsSync(join(folder, name))
  const log = () => readFileSync(join(folder, 'worker.log'), 'utf8')
  return { worker, has, log }
}

type Started = Awaited<ReturnType<typeof startModule>>

async function terminate({ worker, has }: Started, timeoutMs: number): Promise<number | null> {
  await eventually(() => has('serving'), { ...STARTED, what: 'every partition served' })
  process.kill(worker.pid(), 'SIGTERM')
  await eventually(() => worker.exitCode() !== null, { timeoutMs, what: 'the process ended' })
  return worker.exitCode()
}

test('worker module with streams that it never closes, at SIGTERM, ends with 0', async (t) => {
  const started = await startModule(t, STREAMS_MODULE)
  assert.equal(await terminate(started, SPARE_MS), 0)
})

test('worker module with a `close`, at SIGTERM, is called after the drain and awaited', async (t) => {
  const started = await startModule(
    t,
    `${STREAMS_MODULE}
    let released = 0
    worker.release = () => { released += 1 }
    export async function close() {
      await streams.close()
      await new Promise((resolve) => setTimeout(resolve, 1500))
      writeFileSync('closed-after-' + released, '')
    }`,
  )
  assert.equal(await terminate(started, SPARE_MS), 0)
  assert.ok(started.has('closed-after-4'), started.log())
})

test('worker module with a `close` that never ends, at SIGTERM, ends with 0 all the same', async (t) => {
  const started = await startModule(
    t,
    `${STREAMS_MODULE}
    export const close = () => new Promise(() => {})`,
  )
  assert.equal(await terminate(started, CLOSE_MS + SPARE_MS), 0)
})

test('worker module with a `close` that throws, ends with 1 and says why', async (t) => {
  const started = await startModule(
    t,
    `${STREAMS_MODULE}
    export const close = () => { throw new Error('the pool is stuck') }`,
  )
  assert.equal(await terminate(started, SPARE_MS), 1)
  assert.match(started.log(), /the pool is stuck/)
})

test('worker module with streams whose worker cannot start, ends with the error of that', async (t) => {
  const module = STREAMS_MODULE.replace('export const worker', 'export const nothing')
  const { worker, log } = await startModule(t, module)
  const ended = () => worker.exitCode() !== null
  await eventually(ended, { ...STARTED, what: 'the process ended' })
  assert.equal(worker.exitCode(), 2)
  assert.match(log(), /must export the options of startWorker/)
})
