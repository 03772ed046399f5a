/**
 * The HTTP API: reads from memory, operators' changes, the event stream, health and metrics, over the
 * `Groups` port. It knows no store and no broadcast: with the store away it answers reads, says how
 * stale they are, and changes get 503.
 *
 * Life: created → listening → closing (streams end, requests in flight finish, `/readyz` refuses) →
 * closed. A close that takes longer than `closeTimeoutMs` cuts what is left.
 */
import type { AddressInfo } from 'node:net'
import swagger from '@fastify/swagger'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Clock } from '../ports/clock.ts'
import type { Groups } from '../ports/group-access.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { createChangeCheck, isLoopbackHost } from './access.ts'
import {
  createErrorHandler,
  type HttpLogger,
  handleUnknownRoute,
  watchMethods,
} from './error-replies.ts'
import { addEventRoutes } from './event-routes.ts'
import { createEventStreams } from './event-stream.ts'
import { addGroupRoutes } from './group-routes.ts'
import { addHealthRoutes, type MetricsText, type Readiness } from './health-routes.ts'
import { OPENAPI_OPTIONS } from './openapi-base.ts'
import { addOperatorRoutes } from './operator-routes.ts'
import { createOwnerReplies } from './owner-replies.ts'
import { addOwnerRoute } from './owner-route.ts'
import { createLookupServer, type PlainLookupOptions } from './plain-lookups.ts'
import { addRebalanceRoutes } from './rebalance-routes.ts'
import { NAMED_SCHEMAS } from './reply-schemas.ts'
import { noQuery } from './request-schemas.ts'
import type { RouteContext } from './route-context.ts'
import { createValidatorCompiler } from './validation.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Monotonic time at which the request's head was read. */
    beganMs: number
  }
}

const BODY_BYTES_MAX = 64 * 1024
/** A client that has not sent its whole request by then is cut off. */
const REQUEST_TIMEOUT_MS = 30_000
/** Longer than the minute after which many proxies drop a connection: they must be the first. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000

export type HttpServerOptions = {
  readonly groups: Groups
  readonly metrics: MetricsText
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Without a token, changes are taken on loopback only. */
  readonly access: { readonly bearerToken?: string | undefined }
  /** Name or address to listen on; port 0: any free one. */
  readonly host: string
  readonly port: number
  readonly readiness: () => Readiness
  /** Gets failures that nobody expected; requests go to telemetry. */
  readonly logger?: HttpLogger | undefined
  /** Silence on an event stream after which a comment is sent [15 s]. */
  readonly heartbeatMs?: number | undefined
  /** How long `close` waits for requests in flight [5 s]. */
  readonly closeTimeoutMs?: number | undefined
}

export type HttpServer = {
  /** For in-process requests (`app.inject`) and for routes of other parts, before `listen`. */
  readonly app: FastifyInstance
  /** Rejects when the address cannot be had. */
  listen(): Promise<{ readonly host: string; readonly port: number; readonly url: string }>
  /** Resolves when nothing of the server is left; may be called again. */
  close(): Promise<void>
}

/** @example const server = await createHttpServer(options); const { url } = await server.listen() */
export async function createHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { groups, clock, telemetry, metrics, host, port } = options
  let closing: Promise<void> | null = null
  const replies = createOwnerReplies(clock, telemetry)
  const isClosing = () => closing !== null
  const app = createApp(options, { ...options, replies, isClosing })
  let isLoopback = isLoopbackHost(host)
  const readiness = () =>
    closing === null ? options.readiness() : { ready: false, reason: 'this server is closing' }

  await app.register(swagger, OPENAPI_OPTIONS)
  const methods = watchMethods(app)
  const checkChange = createChangeCheck(options.access.bearerToken, () => isLoopback)
  const shared = { groups, clock, telemetry, checkChange }
  const streams = createEventStreams({ clock, heartbeatMs: options.heartbeatMs ?? 15_000 })
  // The hot path stands outside the scope whose hooks all other routes run through.
  addOwnerRoute({ ...shared, app }, replies)
  await app.register((scope, _options, done) => {
    addRequestHooks(scope, clock, telemetry)
    scope.setNotFoundHandler(handleUnknownRoute)
    const context: RouteContext = { ...shared, app: scope }
    addGroupRoutes(context)
    addRebalanceRoutes(context)
    addOperatorRoutes(context)
    addEventRoutes(context, streams)
    addHealthRoutes(context, { metrics, readiness })
    addDocument(scope)
    methods.refuseOthers(scope)
    done()
  })

  return {
    app,
    async listen() {
      await app.listen({ host, port })
      const addresses = app.addresses() as AddressInfo[]
      // A name may resolve to more than it seems: what counts is what is listened on.
      isLoopback = isLoopback && addresses.every(({ address }) => isLoopbackHost(address))
      return whereListening(host, addresses)
    },
    close() {
      closing ??= closeServer(app, streams.close, clock, options.closeTimeoutMs ?? 5000)
      return closing
    },
  }
}

function createApp(options: HttpServerOptions, lookups: PlainLookupOptions): FastifyInstance {
  const { clock, logger } = options
  const prefix = clock.wallMs().toString(36)
  let requests = 0
  const onError = createErrorHandler(logger)
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    serverFactory: (handler) => {
      const server = createLookupServer(lookups, handler)
      server.requestTimeout = REQUEST_TIMEOUT_MS
      server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
      return server
    },
    return503OnClosing: false,
    requestIdHeader: false,
    genReqId: () => `${prefix}-${(++requests).toString(36)}`,
    frameworkErrors: (error, request, reply) => {
      onError(error, request as never, reply as never)
    },
  })
  app.setValidatorCompiler(createValidatorCompiler())
  app.setErrorHandler(onError)
  for (const schema of NAMED_SCHEMAS) app.addSchema(schema)
  acceptJsonOnly(app)
  app.decorateRequest('beganMs', 0)
  return app
}

function addRequestHooks(app: FastifyInstance, clock: Clock, telemetry: Telemetry): void {
  app.addHook('onRequest', (request, reply, done) => {
    request.beganMs = clock.monotonicMs()
    reply.header('x-request-id', request.id)
    done()
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    telemetry.record({
      type: 'http-request',
      method: request.method,
      route: request.routeOptions.url ?? 'unknown',
      status: reply.statusCode,
      tookMs: clock.monotonicMs() - request.beganMs,
    })
    done(null, payload)
  })
  // Bodies are optional where every field is.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.body === undefined && request.routeOptions.schema?.body !== undefined) {
      request.body = {}
    }
    done()
  })
}

/** An empty body is no body; text, which a foreign page may send without asking, is refused. */
function acceptJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') return done(null, undefined)
    return parse(request, body as string, done)
  })
}

function addDocument(app: FastifyInstance): void {
  let text: string | null = null
  app.get('/openapi.json', { schema: { hide: true, querystring: noQuery } }, (_request, reply) => {
    text ??= JSON.stringify(app.swagger())
    return reply.type('application/json; charset=utf-8').send(text)
  })
}

function whereListening(host: string, addresses: readonly AddressInfo[]) {
  const { port = 0 } = addresses[0] ?? {}
  const name = host.includes(':') ? `[${host}]` : host
  return { host, port, url: `http://${name}:${port}` }
}

async function closeServer(
  app: FastifyInstance,
  endStreams: () => void,
  clock: Clock,
  timeoutMs: number,
): Promise<void> {
  endStreams()
  const timer = clock.schedule(timeoutMs, () => app.server.closeAllConnections())
  await app.close()
  timer.cancel()
}
