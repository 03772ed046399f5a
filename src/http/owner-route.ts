/** `owner?key=`: who owns this key's partition. Look-ups that are plain are answered before they come here. */
import type { Static } from '@sinclair/typebox'
import { OWNER_ROUTE, type OwnerReplies } from './owner-replies.ts'
import { ownerView } from './reply-schemas.ts'
import { ownerQuery } from './request-schemas.ts'
import { findGroup, type RouteContext, readRoute } from './route-context.ts'
import { refTo } from './schema-forms.ts'

export function addOwnerRoute(context: RouteContext, replies: OwnerReplies): void {
  const { app } = context
  app.get<{ Params: { group: string }; Querystring: Static<typeof ownerQuery> }>(
    OWNER_ROUTE,
    {
      ...described(),
      errorHandler: (error, request, reply) => {
        app.errorHandler(error, request, reply)
        replies.record(request.method, reply.statusCode)
      },
    },
    (request, reply) => {
      const { group } = request.params
      const { view } = findGroup(context, group)
      replies.send(request.query.key, { group, view }, request.raw, reply.raw)
      reply.hijack()
    },
  )
}

function described() {
  return readRoute(
    {
      operationId: 'findOwner',
      summary: 'Owner of the partition that a key maps onto.',
      description:
        'An answer is a hint: only the token, checked by the owner and by fenced resources, ' +
        'authorises work. A vacant partition answers 200 with owner null and why.',
      querystring: ownerQuery,
    },
    refTo(ownerView),
  )
}
