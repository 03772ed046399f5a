/**
 * Plan: the compose file as data (what depends on what, how long a stop may take), then all of its
 * containers as processes: three etcd, three NATS, two `serve`, the workers; one worker stopped under
 * work, then the others. The mapping from container to process is in substitutions.ts.
 */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findFreePorts } from '../../src/dev/servers-process.ts'
import { eventually } from '../support/eventually.ts'
import { temporaryFolder } from '../support/servers.ts'
import {
  type ComposeService,
  composeContainer,
  durationMs,
  readComposeFile,
} from './compose-file.ts'
import { type Container, logFileIn, PROBE_EVERY_MS, startContainer } from './container.ts'
import { eventsOf, isSettled, ordersLines, readGroup } from './group-as-seen.ts'
import { assembleImage, readImage } from './image.ts'
import { combine, ownPorts, type Substitutions } from './substitutions.ts'

const { services, volumes } = readComposeFile()
const SERVERS = ['etcd-1', 'etcd-2', 'etcd-3', 'nats-1', 'nats-2', 'nats-3']
const OF_TENURE = ['serve-1', 'serve-2', 'worker']
/** Ports that a container listens on, by the first part of its name. */
const PORTS: Readonly<Record<string, readonly number[]>> = {
  etcd: [2379, 2380],
  nats: [4222, 6222, 8222],
  serve: [7300],
  worker: [7301],
}
const SETTLED_MS = 60_000

function service(name: string): ComposeService {
  const found = services[name]
  if (found === undefined) assert.fail(`there is no service ${name}`)
  return found
}

test('compose file, its services, are three etcd, three NATS, two serve and workers', () => {
  assert.deepEqual(Object.keys(services), [...SERVERS, ...OF_TENURE])
  assert.deepEqual(service('serve-1').ports, ['127.0.0.1:7300:7300'])
  for (const name of Object.keys(services)) {
    if (name !== 'serve-1') assert.equal(service(name).ports, undefined, `${name} can be scaled`)
    for (const volume of service(name).volumes ?? []) {
      assert.ok((volume.split(':')[0] ?? '') in volumes, `${name}: ${volume} is declared`)
    }
    assert.doesNotMatch(service(name).image, /^[^/]*[.:][^/]*\//, 'no name of a registry')
  }
})

test('compose file, whoever is of Tenure, waits until every server is healthy', () => {
  for (const name of OF_TENURE) {
    assert.deepEqual(
      service(name).depends_on,
      Object.fromEntries(SERVERS.map((server) => [server, { condition: 'service_healthy' }])),
    )
  }
})

test('compose file, the time for a stop, covers the drain and 5 s', () => {
  for (const name of OF_TENURE) {
    assert.equal(service(name).stop_signal, 'SIGTERM')
    assert.equal(service(name).read_only, true)
  }
  const { environment, stop_grace_period } = service('worker')
  const drainMs = durationMs(environment?.['TENURE_DRAIN_DEADLINE'] ?? '')
  assert.ok(durationMs(stop_grace_period) >= drainMs + 5000)
})

test('compose file, every container as a process, becomes healthy, hands over and exits 0', {
  timeout: 240_000,
}, async (t) => {
  const world = await createWorld(t)
  await Promise.all(SERVERS.map((name) => world.start(name, service(name))))
  const serves = await Promise.all(
    ['serve-1', 'serve-2'].map((name) => world.start(name, service(name))),
  )
  const replicas = service('worker').deploy?.replicas ?? 1
  const workers = await Promise.all(
    Array.from({ length: replicas }, (_, index) =>
      world.start(`worker-${index + 1}`, service('worker')),
    ),
  )
  const url = world.urlOf('serve-1')
  await eventually(() => isSettled(url, replicas), {
    timeoutMs: SETTLED_MS,
    what: 'all partitions served, some by each worker',
  })
  await eventually(async () => (await readGroup(world.urlOf('serve-2'))).owned === 64, {
    timeoutMs: SETTLED_MS,
    what: 'the second serve knows too',
  })

  const [first, ...others] = workers
  if (first === undefined) assert.fail('no worker')
  assert.equal(await first.terminate(), 0)
  const handedOver = eventsOf(first, 'released')
  assert.ok(handedOver.length > 0)
  for (const line of handedOver)
    assert.notEqual(line['to'], null, 'to another worker, not to nobody')
  await eventually(() => isSettled(url, replicas - 1), {
    timeoutMs: SETTLED_MS,
    what: 'the others serve all partitions',
  })
  await world.expectHealthy(...serves, ...others)

  // As `docker compose down` does: what depends on others ends first, all of a kind at once.
  const codes = await Promise.all([...others, ...serves].map((container) => container.terminate()))
  assert.deepEqual(new Set(codes), new Set([0]))
  for (const worker of workers) expectNothingLost(worker)
  const handled = workers.flatMap((worker) => ordersLines(worker, 'released'))
  assert.ok(
    handled.some((line) => Number(line['handled']) > 0),
    'orders were handled',
  )
})

function expectNothingLost(worker: Container): void {
  assert.deepEqual(eventsOf(worker, 'lost'), [], `${worker.spec.name} lost nothing`)
  assert.deepEqual(ordersLines(worker, 'lost'), [])
  assert.equal(eventsOf(worker, 'serving').length, ordersLines(worker, 'released').length)
}

async function createWorld(t: TestContext) {
  const image = readImage()
  const folder = await temporaryFolder(t)
  const imageFolder = await assembleImage(t, image)
  const ports = new Map<string, ReadonlyMap<number, number>>()
  const names = [...SERVERS, 'serve-1', 'serve-2', 'worker-1', 'worker-2', 'worker-3']
  const free = [...(await findFreePorts(names.length * 3))]
  for (const name of names) {
    const inside = PORTS[name.split('-')[0] ?? ''] ?? []
    ports.set(name, new Map(inside.map((port) => [port, free.pop() ?? 0])))
  }
  const others: Substitutions = {
    fragments: new Map(
      SERVERS.flatMap((name) =>
        [...(ports.get(name) ?? [])].map(
          ([inside, here]) => [`${name}:${inside}`, `127.0.0.1:${here}`] as const,
        ),
      ),
    ),
    words: new Map(),
  }
  return {
    start(name: string, one: ComposeService): Promise<Container> {
      const own = ports.get(name) ?? assert.fail(`no ports for ${name}`)
      const data = join(folder, name)
      mkdirSync(data)
      const volume: Substitutions = { fragments: new Map([['/data', data]]), words: new Map() }
      return startContainer(t, composeContainer(name, one, image), {
        substitutions: combine(others, ownPorts(own), volume),
        workingFolder: one.image.startsWith('tenure:') ? imageFolder : data,
        logFile: logFileIn(folder, name),
        ports: [...own.values()],
      })
    },
    urlOf: (name: string) => `http://127.0.0.1:${ports.get(name)?.get(7300)}`,
    async expectHealthy(...containers: readonly Container[]) {
      for (const { spec, probe } of containers) {
        await eventually(() => probe(spec.startup), {
          timeoutMs: 10 * PROBE_EVERY_MS + spec.startupMs,
          what: `${spec.name} is healthy`,
        })
      }
    },
  }
}
