/** Plan: the health check of the image against servers that answer well, badly, elsewhere and not at all. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { findFreePorts } from '../../src/dev/servers-process.ts'
import { REPOSITORY, readImage } from './image.ts'

const { healthCheck } = readImage()

/** Answers 200 to the path and 503 to every other; resolves with the port. */
async function serverWith(t: TestContext, healthyPath: string | null): Promise<number> {
  const server = createServer((request, reply) => {
    if (healthyPath === null) return
    reply.writeHead(request.url === healthyPath ? 200 : 503).end()
  })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

function check(words: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const [, ...args] = words
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: REPOSITORY, env: environment }, (error) =>
      resolve(error === null ? 0 : Number(error.code)),
    )
  })
}

test("image's health check, a process that lives, is passed and asks for liveness", async (t) => {
  const port = await serverWith(t, '/livez')
  assert.equal(await check(healthCheck, { TENURE_HTTP_PORT: String(port) }), 0)
})

test('health check, another path than the one that is healthy, fails', async (t) => {
  const port = await serverWith(t, '/livez')
  const words = [...healthCheck.slice(0, -1), '/readyz']
  assert.equal(await check(words, { TENURE_HTTP_PORT: String(port) }), 1)
})

test("health check, a worker's port beside that of serve, asks the worker's", async (t) => {
  const [serve, worker] = await Promise.all([serverWith(t, '/other'), serverWith(t, '/livez')])
  const environment = { TENURE_HTTP_PORT: String(serve), TENURE_HEALTH_PORT: String(worker) }
  assert.equal(await check(healthCheck, environment), 0)
})

test('health check, nobody listens or nobody answers, fails', async (t) => {
  const [port] = await findFreePorts(1)
  assert.equal(await check(healthCheck, { TENURE_HTTP_PORT: String(port) }), 1)
  const silent = await serverWith(t, null)
  assert.equal(await check(healthCheck, { TENURE_HTTP_PORT: String(silent) }), 1)
})
