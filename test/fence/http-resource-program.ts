/**
 * An HTTP resource as a process of its own: port and folder. Its list and its mark outlive it. Its handler
 * asks the owner back in the middle of the effect, so that an owner can stand still there:
 *
 *   admitted by the early check -> asks at `checked` -> commit: staged -> asks at `written` -> appended
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fastify, { type FastifyRequest } from 'fastify'
import { decodeTokenHeader } from '../../src/core/token-text.ts'
import { fencePlugin, openHighWaterFile, SEAL_PATH, TOKEN_HEADER } from '../../src/fence/http.ts'
import { entryOf } from './list-entries.ts'

const [, , port = '', folder = ''] = process.argv
const effectsFile = join(folder, 'effects.jsonl')
appendFileSync(effectsFile, '')
const committing = new Set<number>()
const sealing = new Set<number>()
const app = fastify()

app.addHook('onRequest', async (request) => {
  if (request.url === SEAL_PATH) sealing.add(partitionOf(request))
})
app.addHook('onSend', async (request) => {
  if (request.url === SEAL_PATH) sealing.delete(partitionOf(request))
})
await app.register(fencePlugin, {
  group: 'conformance',
  store: openHighWaterFile(join(folder, 'fence.log')),
})
app.post<{ Body: { number: number; askAt: string } }>('/append', async (request) => {
  const { token, commit } = request.fence
  const { number, askAt } = request.body
  await ask(`${askAt}/${number}/checked`)
  await commit(async () => {
    committing.add(token.partition)
    const line = `${token.partition} ${entryOf(token, number)}\n`
    await ask(`${askAt}/${number}/written`)
    appendFileSync(effectsFile, line)
    committing.delete(token.partition)
  })
  return {}
})
app.get<{ Params: { partition: string } }>('/effects/:partition', async (request) => {
  const start = `${request.params.partition} `
  const lines = readFileSync(effectsFile, 'utf8').split('\n')
  return lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length))
})
/** A seal that did not wait for the effect would have been answered some turns after it arrived. */
app.get<{ Params: { partition: string } }>('/waiting/:partition', async (request) => {
  const partition = Number(request.params.partition)
  const isWaiting = () => committing.has(partition) && sealing.has(partition)
  for (let turn = 0; turn < 5 && isWaiting(); turn += 1) await nextTurn()
  return isWaiting()
})
await app.listen({ host: '127.0.0.1', port: Number(port) })

async function ask(url: string): Promise<void> {
  const reply = await fetch(url)
  await reply.arrayBuffer()
}

function partitionOf(request: FastifyRequest): number {
  return decodeTokenHeader(String(request.headers[TOKEN_HEADER])).partition
}
