/** An HTTP resource as a process of its own: port and folder. Its list and its mark outlive it. */
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fastify from 'fastify'
import { fencePlugin, openHighWaterFile } from '../../src/fence/http.ts'
import { entryOf } from './list-entries.ts'

const [, , port = '', folder = ''] = process.argv
const effectsFile = join(folder, 'effects.jsonl')
appendFileSync(effectsFile, '')
const app = fastify()
await app.register(fencePlugin, {
  group: 'conformance',
  store: openHighWaterFile(join(folder, 'fence.log')),
})
app.post<{ Body: { number: number } }>('/append', async (request) => {
  const { token, commit } = request.fence
  await commit(() => {
    const entry = entryOf(token, request.body.number)
    appendFileSync(effectsFile, `${token.partition} ${entry}\n`)
  })
  return {}
})
app.get<{ Params: { partition: string } }>('/effects/:partition', async (request) => {
  const start = `${request.params.partition} `
  const lines = readFileSync(effectsFile, 'utf8').split('\n')
  return lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length))
})
await app.listen({ host: '127.0.0.1', port: Number(port) })
