/**
 * Fastify routes without a product behind them: one that returns a constant, which `owner?key=` is held
 * against, and one that does the least an answer by key takes.
 */
import Fastify from 'fastify'
import { partitionOf } from '../core/partition-key.ts'

export type BareHttp = { readonly port: number; close(): Promise<void> }

export type BareArgument = { readonly body: string; readonly partitions: number }

const JSON_TYPE = 'application/json; charset=utf-8'

export async function startBareHttp({ body, partitions }: BareArgument): Promise<BareHttp> {
  const app = Fastify({ logger: false })
  app.get('/owner', (_request, reply) => {
    reply.header('content-type', JSON_TYPE)
    reply.send(body)
  })
  const texts = Array.from({ length: partitions }, () => body)
  app.get<{ Querystring: { key: string } }>('/v1/groups/:group/owner', (request, reply) => {
    reply.header('content-type', JSON_TYPE)
    reply.send(texts[partitionOf(request.query.key, partitions)])
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { port: Number(new URL(url).port), close: () => app.close() }
}
