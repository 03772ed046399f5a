/**
 * The listener of a process that serves no API: `/livez`, `/readyz` and `/metrics`, for probes and
 * Prometheus. Reads only, so nobody is asked who they are.
 *
 * Life: created → listening → closed. A close waits for nobody: a probe that finds no answer is right.
 */
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { createErrorHandler, handleUnknownRoute } from './error-replies.ts'
import { addHealthRoutes, type MetricsText, type Readiness } from './health-routes.ts'
import { createValidatorCompiler } from './validation.ts'

const REQUEST_TIMEOUT_MS = 5000

export type HealthServerOptions = {
  readonly metrics: MetricsText
  readonly readiness: () => Readiness
  /** Name or address to listen on; port 0: any free one. */
  readonly host: string
  readonly port: number
}

export type HealthServer = {
  /** Resolves with the port; rejects when the address cannot be had. */
  listen(): Promise<number>
  close(): Promise<void>
}

export function createHealthServer(options: HealthServerOptions): HealthServer {
  const { metrics, readiness, host, port } = options
  const app = Fastify({
    logger: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
  })
  app.setValidatorCompiler(createValidatorCompiler())
  app.setErrorHandler(createErrorHandler(undefined))
  app.setNotFoundHandler(handleUnknownRoute)
  addHealthRoutes({ app }, { metrics, readiness })
  return {
    async listen() {
      await app.listen({ host, port })
      return (app.server.address() as AddressInfo).port
    },
    async close() {
      await app.close()
    },
  }
}
