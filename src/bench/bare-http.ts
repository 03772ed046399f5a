/** A Fastify route that returns a constant: what `owner?key=` is held against. */
import Fastify from 'fastify'

export type BareHttp = { readonly port: number; close(): Promise<void> }

export async function startBareHttp(body: string): Promise<BareHttp> {
  const app = Fastify({ logger: false })
  app.get('/owner', (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8')
    reply.send(body)
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { port: Number(new URL(url).port), close: () => app.close() }
}
