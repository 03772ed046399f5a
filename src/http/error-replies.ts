/**
 * Every refusal and failure becomes one problem reply here: refused input, unknown routes, wrong
 * methods, errors of the transport, errors nobody expected (logged whole, answered without text).
 */
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
} from 'fastify'
import { isTenureError } from '../core/tenure-error.ts'
import { createProblem, ProblemError, problemBody } from './problem.ts'
import { problemOfField, problemOfValidation } from './validation.ts'

/** What the server logs by itself: only failures that nobody expected. */
export type HttpLogger = { error(context: object, message: string): void }

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function sendProblem(reply: FastifyReply, problem: ProblemError): FastifyReply {
  return reply
    .code(problem.status)
    .headers(problem.headers)
    .header('cache-control', 'no-store')
    .header('content-type', 'application/problem+json; charset=utf-8')
    .send(problemBody(problem, reply.request.id))
}

export function createErrorHandler(logger: HttpLogger | undefined) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const problem = problemOf(error)
    if (problem.code === 'internal') {
      logger?.error({ err: error, requestId: request.id, url: request.routeOptions.url }, 'failed')
    }
    return sendProblem(reply, problem)
  }
}

export function handleUnknownRoute(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split('?')[0]
  return sendProblem(
    reply,
    createProblem('unknown-route', `no route ${path}: GET /openapi.json lists the routes`),
  )
}

/** Notes each route's methods; `refuseOthers` then answers the methods that a known path lacks. */
export function watchMethods(app: FastifyInstance): { refuseOthers(scope: FastifyInstance): void } {
  const methods = new Map<string, Set<string>>()
  let watching = true
  app.addHook('onRoute', ({ url, method }) => {
    if (!watching) return
    const known = methods.get(url) ?? new Set(['OPTIONS'])
    for (const each of [method].flat()) known.add(each)
    methods.set(url, known)
  })
  return {
    refuseOthers(scope) {
      watching = false
      for (const [url, known] of methods) {
        const allow = [...known].sort().join(', ')
        scope.route({
          url,
          method: METHODS.filter((method) => method === 'OPTIONS' || !known.has(method)),
          schema: { hide: true },
          // Ahead of reading a body, whose media type is of no interest here.
          onRequest: (request, reply, done) => {
            if (request.method !== 'OPTIONS') return done(wrongMethod(request.method, allow))
            reply.code(204).header('allow', allow).send()
          },
          handler: handleUnknownRoute,
        })
      }
    },
  }
}

function wrongMethod(method: string, allow: string): ProblemError {
  return createProblem('method-not-allowed', `${method} does not work here: use ${allow}`, {
    headers: { allow },
  })
}

function problemOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  if (isTenureError(error)) {
    const { setting } = error.details
    const errors = typeof setting === 'string' ? [{ field: setting, message: error.message }] : []
    return createProblem(error.code, error.message, errors.length > 0 ? { errors } : {})
  }
  return problemOfTransport(error as FastifyError)
}

function problemOfTransport(error: FastifyError): ProblemError {
  if (error.validation !== undefined) {
    return problemOfValidation(error.validation, error.validationContext ?? 'request')
  }
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return createProblem('body-too-large', 'the body is larger than this server takes: send less')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return createProblem('media-type-unsupported', 'send the body as application/json')
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return problemOfField('body', 'is not valid JSON of the length announced')
    case 'FST_ERR_BAD_URL':
      return problemOfField('path', 'is not validly percent-encoded')
  }
  const status = error.statusCode ?? 500
  if (status >= 400 && status < 500) {
    return createProblem('invalid-argument', error.message, { status })
  }
  return createProblem('internal', 'unexpected failure: the log has it under this request id')
}
