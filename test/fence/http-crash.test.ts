/**
 * Plan: the process of an HTTP resource is killed while seals arrive without a pause, again and again. What
 * it answered to before, it must still know; what it had not answered, it may know or not.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { groupName } from '../../src/core/ids.ts'
import { findFreePorts, startServerProcess } from '../../src/dev/servers-process.ts'
import { createHttpFence } from '../../src/fence/http.ts'
import { createSeededRandom } from '../../src/testing/index.ts'
import { temporaryFolder } from '../support/servers.ts'
import { tokenOf } from './tokens.ts'

const PROGRAM = fileURLToPath(new URL('http-resource-program.ts', import.meta.url))
const CRASHES = 4
const SEALS_MAX = 60

test('what a killed resource had answered to it still refuses to go below', async (t) => {
  const folder = await temporaryFolder(t)
  const [port = 0] = await findFreePorts(1)
  const baseUrl = `http://127.0.0.1:${port}`
  const server = await startServerProcess({
    name: 'http-resource',
    program: process.execPath,
    args: ['--import', 'tsx', PROGRAM, String(port), folder],
    ports: [port],
    logFile: `${folder}/resource.log`,
    isReady: async () => (await fetch(`${baseUrl}/effects/0`).catch(() => null))?.ok === true,
  })
  t.after(() => server.stop())
  const fence = createHttpFence({ baseUrl })
  const random = createSeededRandom('crash')
  const token = (generation: number) => tokenOf(generation, { group: groupName('conformance') })
  let answered = 0
  let sent = 0

  for (let crash = 0; crash < CRASHES; crash += 1) {
    const killAt = answered + 1 + random.integer(SEALS_MAX)
    let killed: Promise<void> | null = null
    for (;;) {
      sent += 1
      const sealing = fence.seal(token(sent)).catch(() => null)
      if (sent >= killAt) killed ??= server.kill()
      const outcome = await sealing
      if (outcome === null) break
      assert.deepEqual(outcome, { ok: true })
      answered = sent
    }
    await killed
    await server.restart()
    const below = await fence.seal(token(answered - 1))
    assert.ok(!below.ok, `${answered} had been answered`)
    assert.ok(below.highest.generation >= answered && below.highest.generation <= sent)
  }
  assert.ok(answered > CRASHES)
})
