/**
 * Plan: the manifests as data (times, selectors, security), then their pods as processes on real etcd and
 * NATS: both `serve`, every worker of the StatefulSet, a rolling restart of the workers as the controller
 * does it, one `serve` stopped through its preStop. The mapping is in substitutions.ts.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findFreePorts } from '../../src/dev/servers-process.ts'
import { eventually } from '../support/eventually.ts'
import { startEtcd, startNats, temporaryFolder } from '../support/servers.ts'
import { durationMs } from './compose-file.ts'
import { type Container, logFileIn, startContainer } from './container.ts'
import { eventsOf, isSettled, ordersLines, readOwned } from './group-as-seen.ts'
import { assembleImage, REPOSITORY, readImage } from './image.ts'
import {
  onlyContainer,
  type PodSpec,
  podContainer,
  readManifests,
  type Workload,
} from './manifests.ts'
import { combine, ownPorts, type Substitutions } from './substitutions.ts'

const image = readImage()
const manifests = readManifests()
const { deployment, statefulSet, settings, services, budgets } = manifests
const WORKLOADS = [deployment, statefulSet]
const SETTLED_MS = 60_000
/** What closing `serve` may take (src/http/http-server.ts). */
const SERVE_CLOSE_MS = 5000

test('manifests, the time for a stop, covers preStop, drain and 5 s', () => {
  const [settingsOfAll] = [...settings.values()]
  const drainMs = durationMs(settingsOfAll?.['TENURE_DRAIN_DEADLINE'] ?? '')
  const serve = podContainer('tenure-serve-a', deployment, manifests, image)
  const preStopMs = Number(serve.preStop?.at(-1)) * 1000
  assert.deepEqual(serve.preStop?.slice(0, -1), ['sleep'])
  assert.ok(serve.stopGraceMs >= preStopMs + SERVE_CLOSE_MS + 5000)
  const worker = podContainer('orders-0', statefulSet, manifests, image)
  assert.equal(worker.preStop, null, 'SIGTERM drains')
  assert.ok(worker.stopGraceMs >= drainMs + 5000)
})

test('manifests, selectors and names, fit together', () => {
  const selectors = [...budgets.map(({ selector }) => selector.matchLabels)]
  for (const { metadata, spec } of WORKLOADS) {
    const { labels } = spec.template.metadata
    const isMine = (selector: object) =>
      Object.entries(selector).every(([name, value]) => labels[name] === value)
    assert.ok(isMine(spec.selector.matchLabels), `${metadata.name} selects its own pods`)
    assert.equal(selectors.filter(isMine).length, 1, `${metadata.name} has one disruption budget`)
    const ofWorkload = [...services].filter(([, { selector }]) => isMine(selector))
    assert.equal(ofWorkload.length, 1, `${metadata.name} has one Service`)
    if (spec.serviceName !== undefined) {
      assert.equal(ofWorkload[0]?.[0], spec.serviceName)
      assert.equal(ofWorkload[0]?.[1].clusterIP, 'None')
    }
  }
  assert.equal(deployment.spec.replicas, 2)
})

test('manifests, every pod, runs without root, writes nothing and asks for resources', () => {
  const text = readFileSync(join(REPOSITORY, 'package.json'), 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  for (const workload of WORKLOADS) {
    const { securityContext } = workload.spec.template.spec
    const container = onlyContainer(workload)
    assert.equal(container.image, `tenure:${version}`)
    assert.equal(securityContext.runAsNonRoot, true)
    assert.equal(`${securityContext.runAsUser}`, image.user.split(':')[0])
    assert.equal(container.securityContext.readOnlyRootFilesystem, true)
    assert.equal(container.securityContext.allowPrivilegeEscalation, false)
    assert.deepEqual(container.securityContext.capabilities.drop, ['ALL'])
    assert.deepEqual(Object.keys(container.resources.requests).sort(), ['cpu', 'memory'])
  }
})

test('manifests, every pod as a process, becomes ready, hands over and exits 0', {
  timeout: 240_000,
}, async (t) => {
  const world = await createWorld(t)
  const serves = await Promise.all(
    ['tenure-serve-a', 'tenure-serve-b'].map((pod) => world.start(pod, deployment)),
  )
  const names = Array.from({ length: statefulSet.spec.replicas }, (_, index) => `orders-${index}`)
  const pods = new Map<string, Pod>()
  const ended: Container[] = []
  for (const pod of await Promise.all(names.map((name) => world.start(name, statefulSet)))) {
    pods.set(pod.container.spec.name, pod)
  }
  const [first, second] = serves
  if (first === undefined || second === undefined) assert.fail('two serve')
  for (const pod of [...serves, ...pods.values()]) await pod.becomesReady()
  await eventually(() => isSettled(second.url, names.length), {
    timeoutMs: SETTLED_MS,
    what: 'all partitions served, some by each worker',
  })
  assert.deepEqual([...(await readOwned(second.url)).keys()].sort(), names, "the pods' names")

  // A rolling update goes from the last to the first, one at a time.
  for (const name of names.toReversed()) {
    const old = pods.get(name) ?? assert.fail(name)
    assert.equal(await old.container.terminate(), 0)
    ended.push(old.container)
    const released = eventsOf(old.container, 'released')
    assert.ok(released.length > 0, `${name} had partitions`)
    for (const line of released) assert.notEqual(line['to'], null, 'to a worker, not to nobody')
    const renewed = await world.start(name, statefulSet)
    pods.set(name, renewed)
    await renewed.becomesReady()
    await eventually(() => isSettled(second.url, names.length), {
      timeoutMs: SETTLED_MS,
      what: `${name} has partitions again`,
    })
  }

  // The listener answers while preStop runs: clients may still come through the Service.
  const asked = { answers: 0, refusals: 0, preStopRuns: true }
  const asking = (async () => {
    while (asked.preStopRuns) {
      if (await first.container.probe(first.spec.readiness)) asked.answers++
      else asked.refusals++
    }
  })()
  const preStopCode = await first.container.run(first.spec.preStop ?? [])
  asked.preStopRuns = false
  await asking
  assert.equal(preStopCode, 0)
  assert.ok(asked.answers > 0)
  assert.equal(asked.refusals, 0)
  assert.equal(await first.container.terminate(), 0)
  assert.ok(await second.container.probe(second.spec.readiness), 'the other goes on')

  const rest = [...pods.values()].map(({ container }) => container)
  const codes = await Promise.all([...rest, second.container].map((one) => one.terminate()))
  assert.deepEqual(new Set(codes), new Set([0]))
  for (const worker of [...ended, ...rest]) {
    assert.deepEqual(eventsOf(worker, 'lost'), [], `${worker.spec.name} lost nothing`)
    assert.deepEqual(ordersLines(worker, 'lost'), [])
  }
  const handled = [...ended, ...rest].flatMap((worker) => ordersLines(worker, 'released'))
  assert.ok(
    handled.some((line) => Number(line['handled']) > 0),
    'orders were handled',
  )
})

type Pod = {
  readonly container: Container
  readonly spec: PodSpec
  readonly url: string
  /** Liveness, then readiness, as the kubelet asks once the startup probe has passed. */
  becomesReady(): Promise<void>
}

async function createWorld(t: TestContext) {
  const [etcd, nats] = await Promise.all([startEtcd(t), startNats(t)])
  const folder = await temporaryFolder(t)
  const imageFolder = await assembleImage(t, image)
  const environment = Object.assign({}, ...settings.values()) as Record<string, string>
  // Every server that the settings name is the one server of its kind here.
  const servers: Substitutions = {
    fragments: new Map([
      ...namesIn(environment['TENURE_ETCD_ENDPOINTS']).map(
        (name) => [name, `127.0.0.1:${etcd.clientPort}`] as const,
      ),
      ...namesIn(environment['TENURE_NATS_SERVERS']).map(
        (name) => [name, `127.0.0.1:${nats.port}`] as const,
      ),
    ]),
    words: new Map(),
  }
  return {
    async start(name: string, workload: Workload): Promise<Pod> {
      const inside = onlyContainer(workload).ports.map(({ containerPort }) => containerPort)
      const free = await findFreePorts(inside.length)
      const ports = new Map(inside.map((port, index) => [port, free[index] ?? 0]))
      const spec = podContainer(name, workload, manifests, image)
      const container = await startContainer(t, spec, {
        substitutions: combine(servers, ownPorts(ports)),
        workingFolder: imageFolder,
        logFile: logFileIn(folder, name),
        ports: free,
      })
      return {
        container,
        spec,
        url: `http://127.0.0.1:${free[0]}`,
        async becomesReady() {
          assert.ok(await container.probe(spec.liveness), `${name} is alive`)
          await eventually(() => container.probe(spec.readiness), {
            timeoutMs: SETTLED_MS,
            what: `${name} is ready`,
          })
        },
      }
    },
  }
}

function namesIn(servers: string | undefined): readonly string[] {
  return (servers ?? '').split(',')
}
