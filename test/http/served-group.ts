/** A server over a plain group, and what tests do with it. */
import type { TestContext } from 'node:test'
import type { InjectOptions } from 'fastify'
import { createHttpServer, type HttpServerOptions } from '../../src/http/http-server.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'
import { createPlainGroup } from './plain-groups.ts'

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return { cancel: () => clearTimeout(timer) }
  },
}

export async function serveGroup(test: TestContext, options: Partial<HttpServerOptions> = {}) {
  const group = createPlainGroup()
  const recorded: TelemetryEvent[] = []
  const server = await createHttpServer({
    groups: group.groups,
    metrics: { text: async () => 'tenure_up 1\n', contentType: 'text/plain; version=0.0.4' },
    clock: systemClock,
    telemetry: { record: (event) => recorded.push(event) },
    access: {},
    host: '127.0.0.1',
    port: 0,
    readiness: () => ({ ready: true, reason: 'follows the map' }),
    ...options,
  })
  test.after(() => server.close())
  const send = async (
    method: NonNullable<InjectOptions['method']>,
    url: string,
    body?: object | string,
    headers: Record<string, string> = {},
  ) => {
    const reply = await server.app.inject({
      method,
      url,
      headers: { host: '127.0.0.1:8080', ...headers },
      ...(body === undefined ? {} : { payload: body }),
    })
    const isJson = String(reply.headers['content-type'] ?? '').includes('json')
    return {
      status: reply.statusCode,
      headers: reply.headers,
      text: reply.body,
      body: isJson && reply.body !== '' ? JSON.parse(reply.body) : null,
    }
  }
  return { group, server, recorded, send, get: (url: string) => send('GET', url) }
}
