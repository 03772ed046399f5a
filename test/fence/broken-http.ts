/**
 * An HTTP resource, right (null) or broken in one way, as a server in this process:
 *
 *   check-outside-transaction   the handler commits nothing, and writes after that
 *   equal-generation-accepted   the resource looks at no session
 *   lost-on-restart             the mark is kept in memory, the effects outlive it
 *   no-seal                     the seal's route does nothing, and an effect raises the mark by itself
 */
import { join } from 'node:path'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { decideSeal } from '../../src/core/fence.ts'
import { sessionId } from '../../src/core/ids.ts'
import { decodeTokenHeader, encodeTokenHeader } from '../../src/core/token-text.ts'
import {
  createHttpFence,
  createMemoryHighWater,
  FENCE_HEADER,
  fencePlugin,
  openHighWaterFile,
  SEAL_PATH,
  TOKEN_HEADER,
} from '../../src/fence/http.ts'
import { PROBLEM_TYPE, refusalProblem } from '../../src/fence/http-problem.ts'
import { type EffectStep, type FenceResource, ownerInProcess } from '../../src/testing/index.ts'
import { type CleanUp, temporaryFolder } from '../support/servers.ts'
import { entryOf, readEntry } from './list-entries.ts'
import type { Break } from './memory-resource.ts'

type Entry = { readonly partition: number; readonly entry: string }
type Append = { readonly Body: Entry & { readonly number: number } }
/** What outlives the server. */
type Kept = {
  readonly markFile: string
  readonly entries: Entry[]
  /** The steps of effects that are under way, of owners in this process. */
  readonly steps: Map<string, EffectStep>
}

export async function brokenHttp(cleanUp: CleanUp, broken: Break | null): Promise<FenceResource> {
  const markFile = join(await temporaryFolder(cleanUp), 'fence.log')
  const kept: Kept = { markFile, entries: [], steps: new Map() }
  const anyPort = { host: '127.0.0.1', port: 0 }
  let app = await startResource(kept, broken)
  let baseUrl = await app.listen(anyPort)
  cleanUp.after(() => app.close())
  return {
    async owner() {
      const url = `${baseUrl}/append`
      return ownerInProcess({
        fence: createHttpFence({ baseUrl }),
        effectOf(token, number, step) {
          kept.steps.set(stepKey(token.partition, number), step)
          const body = { partition: token.partition, number, entry: entryOf(token, number) }
          const headers = { 'content-type': 'application/json' }
          const init = { method: 'POST', headers, body: JSON.stringify(body) }
          return { url, init }
        },
      })
    },
    async applied(partition) {
      const own = kept.entries.filter((entry) => entry.partition === partition)
      return own.map(({ entry }) => readEntry(entry))
    },
    stops: broken === 'check-outside-transaction' ? ['before', 'checked'] : ['before'],
    async restart() {
      await app.close()
      app = await startResource(kept, broken)
      // Elsewhere, as this process still has connections to the place that is gone.
      baseUrl = await app.listen(anyPort)
    },
  }
}

async function startResource(kept: Kept, broken: Break | null): Promise<FastifyInstance> {
  const app = fastify()
  if (broken === 'no-seal') {
    addRoutesWithoutSeal(app, kept)
    return app
  }
  if (broken === 'equal-generation-accepted') {
    app.addHook('onRequest', async (request) => {
      const token = { ...tokenOf(request), session: sessionId('0000000000000001') }
      request.headers[TOKEN_HEADER] = encodeTokenHeader(token)
    })
  }
  const isForgetful = broken === 'lost-on-restart'
  const store = isForgetful ? createMemoryHighWater() : openHighWaterFile(kept.markFile)
  await app.register(fencePlugin, { group: 'conformance', store })
  app.post<Append>('/append', async (request) => {
    const { partition, number, entry } = request.body
    if (broken === 'check-outside-transaction') {
      await request.fence.commit(() => {})
      await kept.steps.get(stepKey(partition, number))?.('checked')
      kept.entries.push({ partition, entry })
    } else {
      await request.fence.commit(() => kept.entries.push({ partition, entry }))
    }
    return {}
  })
  return app
}

function addRoutesWithoutSeal(app: FastifyInstance, { entries }: Kept): void {
  const store = createMemoryHighWater()
  app.addHook('onRequest', async (_request, reply) => {
    reply.header(FENCE_HEADER, '1')
  })
  app.post(SEAL_PATH, async () => ({}))
  app.post<Append>('/append', async (request, reply) => {
    const token = tokenOf(request)
    const highest = store.highest(token.partition)
    if (decideSeal(highest, token) === 'refuse') {
      const problem = refusalProblem(token, { reason: 'stale', highest })
      return reply.code(problem.status).type(PROBLEM_TYPE).send(JSON.stringify(problem))
    }
    await store.raise(token)
    entries.push({ partition: token.partition, entry: request.body.entry })
    return {}
  })
}

function tokenOf(request: FastifyRequest) {
  return decodeTokenHeader(String(request.headers[TOKEN_HEADER]))
}

function stepKey(partition: number, number: number): string {
  return `${partition}/${number}`
}
