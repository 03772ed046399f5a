/** The Redis, etcd and HTTP fences against the conformance suite: two processes, 200 points each. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { groupName } from '../../src/core/ids.ts'
import { findFreePorts, startServerProcess } from '../../src/dev/servers-process.ts'
import { redisKey } from '../../src/fence/redis.ts'
import {
  type FenceResource,
  fenceConformance,
  type StopAt,
  startFenceOwner,
} from '../../src/testing/index.ts'
import { connectEtcd } from '../support/etcd-client.ts'
import { connectRedis, startRedis } from '../support/redis.ts'
import { type CleanUp, startEtcd, temporaryFolder } from '../support/servers.ts'
import { readEntry } from './list-entries.ts'

const POINTS = 200
/** Their effects are no code of the worker's, so check and write are one step at the server. */
const OUTSIDE: readonly StopAt[] = ['before', 'during']

async function redisResource(cleanUp: CleanUp): Promise<FenceResource> {
  const server = await startRedis(cleanUp)
  const redis = connectRedis(cleanUp, server)
  const group = groupName('conformance')
  return {
    owner: () => owner('redis-owner-program.ts', String(server.port)),
    stops: OUTSIDE,
    async applied(partition) {
      const entries = await redis.lrange(redisKey({ group, partition }, 'effects'), 0, -1)
      return entries.map(readEntry)
    },
    restart: () => killAndRestart(server),
  }
}

async function etcdResource(cleanUp: CleanUp): Promise<FenceResource> {
  // What was written and not yet flushed outlives a killed process, as it does not a failed machine.
  const server = await startEtcd(cleanUp)
  const etcd = connectEtcd(cleanUp, server.endpoint)
  return {
    owner: () => owner('etcd-owner-program.ts', server.endpoint),
    stops: OUTSIDE,
    async applied(partition) {
      const all = etcd.getAll().prefix(`/effects/${partition}/`)
      return Object.values(await all.sort('Create', 'Ascend').strings()).map(readEntry)
    },
    restart: () => killAndRestart(server),
  }
}

async function httpResource(cleanUp: CleanUp): Promise<FenceResource> {
  const folder = await temporaryFolder(cleanUp)
  const [port = 0] = await findFreePorts(1)
  const baseUrl = `http://127.0.0.1:${port}`
  const server = await startServerProcess({
    name: 'http-resource',
    program: process.execPath,
    args: ['--import', 'tsx', pathOf('http-resource-program.ts'), String(port), folder],
    ports: [port],
    logFile: `${folder}/resource.log`,
    isReady: async () => (await fetch(`${baseUrl}/effects/0`).catch(() => null))?.ok === true,
  })
  cleanUp.after(() => server.stop())
  return {
    owner: () => owner('http-owner-program.ts', baseUrl),
    async applied(partition) {
      const reply = await fetch(`${baseUrl}/effects/${partition}`)
      return ((await reply.json()) as string[]).map(readEntry)
    },
    async sealWaits(partition) {
      const reply = await fetch(`${baseUrl}/waiting/${partition}`)
      return (await reply.json()) === true
    },
    restart: () => killAndRestart(server),
  }
}

function owner(program: string, where: string) {
  return startFenceOwner({ program: pathOf(program), args: [where] })
}

async function killAndRestart(server: { kill(): Promise<void>; restart(): Promise<void> }) {
  await server.kill()
  await server.restart()
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(program, import.meta.url))
}

const RESOURCES = { redis: redisResource, etcd: etcdResource, http: httpResource }

for (const [name, makeResource] of Object.entries(RESOURCES)) {
  test(`an old owner stopped at ${POINTS} points of its writes to ${name} is refused`, async (t) => {
    const report = await fenceConformance({
      makeResource: () => makeResource(t),
      points: POINTS,
      seed: name,
    })
    t.diagnostic(JSON.stringify(report.stops))
    assert.deepEqual(report.violations, [])
    const { before, during, checked, written } = report.stops
    const each = name === 'http' ? POINTS / 4 : POINTS / 2
    assert.deepEqual(before, { stopped: each, sealedMeanwhile: each, sealWaited: 0 })
    assert.ok(during.stopped > 0, 'some write was stopped on its way')
    if (name === 'http') {
      // Admitted early and overtaken; inside the commit, which the seal waits for.
      assert.deepEqual(checked, { stopped: each, sealedMeanwhile: each, sealWaited: 0 })
      assert.deepEqual(written, { stopped: each, sealedMeanwhile: 0, sealWaited: each })
    }
    assert.equal(report.restartChecked, true)
  })
}
