/**
 * What every route works with, and the manners that routes share: finding the group, answering a read
 * with its version and age, checking who may change something, and documenting all that.
 */
import type { TSchema } from '@sinclair/typebox'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  onRequestHookHandler,
} from 'fastify'
import type { Clock } from '../ports/clock.ts'
import type { By, Change, GroupAdmin, Groups, GroupView } from '../ports/group-access.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { ChangeCheck } from './access.ts'
import type { HeaderSchemas } from './openapi-base.ts'
import { createProblem, problemOfRefusal } from './problem.ts'
import { problem } from './reply-schemas.ts'
import { noQuery } from './request-schemas.ts'
import { refTo } from './schema-forms.ts'
import {
  demandVersion,
  type FreshnessFields,
  freshnessFields,
  isUnchanged,
} from './version-headers.ts'

export type RouteContext = {
  readonly app: FastifyInstance
  readonly groups: Groups
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly checkChange: ChangeCheck
}

type Found = { readonly view: GroupView; readonly admin: GroupAdmin }

/** @throws ProblemError `unknown-group`. */
export function findGroup(context: RouteContext, group: string): Found {
  const found = context.groups.find(group)
  if (found !== null) return found
  throw createProblem('unknown-group', `no group "${group}" here: GET /v1/groups lists the groups`)
}

/** The group of a changing request whose `If-Match`, if any, names the version that stands. */
export function findGroupToChange(
  context: RouteContext,
  request: FastifyRequest,
  group: string,
): Found {
  const found = findGroup(context, group)
  demandVersion(request.headers['if-match'], found.view)
  return found
}

/** Answers 304, or 200 with the body and the version that it was made from. */
export function sendRead(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  view: GroupView,
  body: (fields: FreshnessFields) => object,
): FastifyReply {
  const fields = freshnessFields(view.freshness(), context.clock)
  const etag = `"${fields.version}"`
  reply.header('etag', etag)
  reply.header('cache-control', 'no-cache')
  if (isUnchanged(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.send(body(fields))
}

/** @throws ProblemError for a change that was not made. */
export function changedValue<T>(change: Change<T>): T {
  if (!change.ok) throw problemOfRefusal(change)
  return change.value
}

/** Who asked and why, from the body; who did not say is named by address. */
export function askedBy(
  request: FastifyRequest,
  body: { readonly by?: string | undefined; readonly reason?: string | undefined },
): By {
  return { by: body.by ?? `http ${request.ip}`, why: body.reason ?? '' }
}

function changeHook(context: RouteContext): onRequestHookHandler {
  return (request, _reply, done) => {
    const refusal = context.checkChange({
      authorization: request.headers.authorization,
      host: request.headers.host,
      fetchSite: request.headers['sec-fetch-site'] as string | undefined,
    })
    done(refusal ?? undefined)
  }
}

type Documented = {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly params?: TSchema
  readonly querystring?: TSchema
}
type Replies = Readonly<Record<number, TSchema>>

const PROBLEM = {
  description: 'Refused; `code` says why.',
  content: { 'application/problem+json': { schema: refTo(problem) } },
}
const EMPTY = (description: string) => ({ type: 'null', description })

/** The options of a reading route. */
export function readRoute(route: Documented, ok: TSchema) {
  const schema: FastifySchema = {
    querystring: noQuery,
    ...route,
    tags: ['reads'],
    response: {
      200: ok,
      304: EMPTY('The map is still at the version named.'),
      400: PROBLEM,
      404: PROBLEM,
    },
  }
  const documentedHeaders: HeaderSchemas = {
    'if-none-match': { description: 'ETag known already.' },
  }
  return { schema, config: { documentedHeaders } }
}

/** The options of a changing route: the check of who asks comes before anything is read. */
export function changeRoute(
  context: RouteContext,
  route: Documented & { readonly body?: TSchema; readonly headers?: HeaderSchemas },
  replies: Replies,
) {
  const { headers, ...rest } = route
  const schema: FastifySchema = {
    querystring: noQuery,
    ...rest,
    tags: ['changes'],
    security: [{ bearer: [] }],
    response: {
      ...replies,
      ...{ 400: PROBLEM, 401: PROBLEM, 403: PROBLEM, 404: PROBLEM },
      ...{ 409: PROBLEM, 412: PROBLEM, 503: PROBLEM },
    },
  }
  const documentedHeaders: HeaderSchemas = {
    'if-match': {
      description: 'ETag that the decision was made on; compared with the map of this process.',
    },
    ...headers,
  }
  return { onRequest: changeHook(context), schema, config: { documentedHeaders } }
}

/** 204: done, nothing to say. */
export const NO_CONTENT = EMPTY('Done.') as unknown as TSchema
