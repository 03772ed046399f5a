/**
 * `owner?key=`: who owns this key's partition. The hot path: one look into the map and one string, no
 * serializer and no object per reply.
 */
import type { Static } from '@sinclair/typebox'
import type { Freshness, PartitionView } from '../ports/group-access.ts'
import { ownerView } from './reply-schemas.ts'
import { groupParams, ownerQuery } from './request-schemas.ts'
import { findGroup, type RouteContext, readSchema } from './route-context.ts'
import { refTo } from './schema-forms.ts'
import { isUnchanged, versionText } from './version-headers.ts'

export function addOwnerRoute(context: RouteContext): void {
  const { app, clock } = context
  app.get<{ Params: Static<typeof groupParams>; Querystring: Static<typeof ownerQuery> }>(
    '/v1/groups/:group/owner',
    {
      schema: readSchema(
        {
          operationId: 'findOwner',
          summary: 'Owner of the partition that a key maps onto.',
          description:
            'An answer is a hint: only the token, checked by the owner and by fenced resources, ' +
            'authorises work. A vacant partition answers 200 with owner null and why.',
          params: groupParams,
          querystring: ownerQuery,
        },
        refTo(ownerView),
      ),
    },
    (request, reply) => {
      const { group } = request.params
      const { view } = findGroup(context, group)
      const freshness = view.freshness()
      const version = versionText(freshness.version)
      const etag = `"${version}"`
      reply.header('etag', etag)
      const known = request.headers['if-none-match']
      if (known !== undefined && isUnchanged(known, etag)) return reply.code(304).send()
      reply.header('content-type', 'application/json; charset=utf-8')
      const partition = view.partition(view.partitionOf(request.query.key))
      return reply.send(ownerBody(group, partition, freshness, clock.wallMs()))
    },
  )
}

/** Names, sessions and versions hold no character that JSON escapes; addresses and reasons may. */
export function ownerBody(
  group: string,
  partition: PartitionView,
  { version, ageMs, stale }: Freshness,
  wallMs: number,
): string {
  const age = Math.round(ageMs)
  return (
    `{"group":"${group}","partition":${partition.partition},${ownerFields(partition)},` +
    `"phase":"${partition.phase}","serving":${partition.serving},"why":${textOrNull(partition.why)},` +
    `"version":"${versionText(version)}","asOfMs":${wallMs - age},"ageMs":${age},"stale":${stale}}`
  )
}

function ownerFields({ owner, incarnation, generation }: PartitionView): string {
  if (owner === null) return '"owner":null,"token":null'
  return (
    `"owner":{"member":"${owner.member}","address":${JSON.stringify(owner.address)},"live":${owner.live}},` +
    `"token":{"incarnation":${incarnation},"generation":${generation},"session":"${owner.session}"}`
  )
}

function textOrNull(text: string | null): string {
  return text === null ? 'null' : JSON.stringify(text)
}
