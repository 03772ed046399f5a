/**
 * `/livez` says only that the event loop turns: a process that cannot reach the store is alive, and
 * restarting it would help nobody. `/readyz` says whether to send it requests. `/metrics` for Prometheus.
 */
import { Type } from '@sinclair/typebox'
import { createProblem } from './problem.ts'
import { noQuery } from './request-schemas.ts'
import type { RouteContext } from './route-context.ts'

export type Readiness = { readonly ready: boolean; readonly reason: string }

export type MetricsText = {
  text(): Promise<string>
  readonly contentType: string
}

export function addHealthRoutes(
  context: Pick<RouteContext, 'app'>,
  options: { readonly metrics: MetricsText; readonly readiness: () => Readiness },
): void {
  const { app } = context
  const { metrics, readiness } = options
  app.get(
    '/livez',
    {
      schema: {
        operationId: 'livez',
        summary: 'The event loop turns.',
        tags: ['process'],
        querystring: noQuery,
        response: { 200: Type.Object({ live: Type.Literal(true) }) },
      },
    },
    (_request, reply) => reply.header('cache-control', 'no-store').send({ live: true }),
  )
  app.get(
    '/readyz',
    {
      schema: {
        operationId: 'readyz',
        summary: 'Whether to send requests here; 503 says why not.',
        tags: ['process'],
        querystring: noQuery,
        response: { 200: Type.Object({ ready: Type.Literal(true), reason: Type.String() }) },
      },
    },
    (_request, reply) => {
      const { ready, reason } = readiness()
      if (!ready) throw createProblem('not-ready', reason)
      return reply.header('cache-control', 'no-store').send({ ready, reason })
    },
  )
  app.get(
    '/metrics',
    {
      schema: {
        operationId: 'metrics',
        summary: 'Metrics in the Prometheus text format.',
        tags: ['process'],
        response: {
          200: {
            description: 'Metrics.',
            content: { 'text/plain': { schema: { type: 'string' } } },
          },
        },
      },
    },
    async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  )
}
