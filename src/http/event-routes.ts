/** The route of the event stream: where a reader goes on from, and what is refused before it begins. */
import { type Static, Type } from '@sinclair/typebox'
import { type EventStreams, STREAMS_MAX } from './event-stream.ts'
import { createProblem } from './problem.ts'
import { groupParams } from './request-schemas.ts'
import { findGroup, type RouteContext, readRoute } from './route-context.ts'
import { problemOfField } from './validation.ts'
import { parseVersion } from './version-headers.ts'

const eventsQuery = Type.Object(
  {
    after: Type.Optional(
      Type.String({ description: 'Version to go on from, where no Last-Event-ID can be sent.' }),
    ),
  },
  { additionalProperties: false },
)

export function addEventRoutes(context: RouteContext, streams: EventStreams): void {
  context.app.get<{
    Params: Static<typeof groupParams>
    Querystring: Static<typeof eventsQuery>
  }>('/v1/groups/:group/events', { ...described(), exposeHeadRoute: false }, (request, reply) => {
    const { view } = findGroup(context, request.params.group)
    const header = request.headers['last-event-id']
    const field = header === undefined ? 'after' : 'last-event-id'
    const text = header === undefined ? request.query.after : String(header)
    const after = text === undefined || text === '' ? null : parseVersion(text)
    if (after === null && text !== undefined && text !== '') {
      throw problemOfField(field, 'must be a version, <incarnation>.<revision>')
    }
    if (streams.size >= STREAMS_MAX) {
      throw createProblem('overloaded', `${STREAMS_MAX} streams are open: use another server`)
    }
    reply.hijack()
    context.telemetry.record({
      type: 'http-request',
      method: 'GET',
      route: '/v1/groups/:group/events',
      status: 200,
      tookMs: context.clock.monotonicMs() - request.beganMs,
    })
    reply.raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-request-id': request.id,
    })
    streams.open(reply.raw, view, after)
  })
}

function described() {
  const { schema } = readRoute(
    {
      operationId: 'followEvents',
      summary: 'Changes of the map as server-sent events, resumable by version.',
      description:
        '`start` or `reset` comes first, each with the version to go on from; after `reset`, ' +
        'read the partitions again. `map` carries changed partitions; its id is the version.',
      params: groupParams,
      querystring: eventsQuery,
    },
    Type.String(),
  )
  const stream = {
    description: 'The stream.',
    content: { 'text/event-stream': { schema: { type: 'string' } } },
  }
  const { 304: _, ...refusals } = schema.response as Record<number, unknown>
  return {
    schema: { ...schema, response: { ...refusals, 200: stream } },
    config: { documentedHeaders: { 'last-event-id': { description: 'Version to go on from.' } } },
  }
}
