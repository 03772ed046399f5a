/** The Redis, etcd and HTTP fences against the conformance suite: two processes, 200 points each. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { groupName } from '../../src/core/ids.ts'
import { findFreePorts, startServerProcess } from '../../src/dev/servers-process.ts'
import { redisKey } from '../../src/fence/redis.ts'
import { type FenceResource, fenceConformance, startFenceOwner } from '../../src/testing/index.ts'
import { connectEtcd } from '../support/etcd-client.ts'
import { connectRedis, startRedis } from '../support/redis.ts'
import { type CleanUp, startEtcd, temporaryFolder } from '../support/servers.ts'
import { readEntry } from './list-entries.ts'

const POINTS = 200

async function redisResource(cleanUp: CleanUp): Promise<FenceResource> {
  const server = await startRedis(cleanUp)
  const redis = connectRedis(cleanUp, server)
  const group = groupName('conformance')
  return {
    owner: () => owner('redis-owner-program.ts', String(server.port)),
    async applied(partition) {
      const entries = await redis.lrange(redisKey({ group, partition }, 'effects'), 0, -1)
      return entries.map(readEntry)
    },
    restart: () => killAndRestart(server),
  }
}

async function etcdResource(cleanUp: CleanUp): Promise<FenceResource> {
  const server = await startEtcd(cleanUp, { unsafeNoFsync: false })
  const etcd = connectEtcd(cleanUp, server.endpoint)
  return {
    owner: () => owner('etcd-owner-program.ts', server.endpoint),
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
  test(`an old owner stopped at ${POINTS} points before a write to ${name} is refused`, async (t) => {
    const report = await fenceConformance({
      makeResource: () => makeResource(t),
      points: POINTS,
      seed: name,
    })
    t.diagnostic(JSON.stringify(report))
    assert.deepEqual(report.violations, [])
    assert.ok(report.sealedMeanwhile > POINTS / 10, `${report.sealedMeanwhile}`)
    assert.ok(report.stopped.before > POINTS / 10 && report.stopped.during > POINTS / 10)
    assert.equal(report.restartChecked, true)
  })
}
