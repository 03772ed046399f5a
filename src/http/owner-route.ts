/**
 * `owner?key=`: who owns this key's partition. The hot path: one look into the map and one string, no
 * serializer, no hooks (what they would do is done here) and no
 * request id but in refusals.
 */
import type { Static } from '@sinclair/typebox'
import type { Freshness, PartitionView } from '../ports/group-access.ts'
import { ownerView } from './reply-schemas.ts'
import { ownerQuery } from './request-schemas.ts'
import { findGroup, type RouteContext, readRoute } from './route-context.ts'
import { refTo } from './schema-forms.ts'
import { isUnchanged, versionText } from './version-headers.ts'

const ROUTE = '/v1/groups/:group/owner'

export function addOwnerRoute(context: RouteContext): void {
  const { app, clock, telemetry } = context
  const record = (method: string, status: number, beganMs: number) =>
    telemetry.record({
      ...{ type: 'http-request', route: ROUTE, method, status },
      tookMs: clock.monotonicMs() - beganMs,
    })
  app.get<{ Params: { group: string }; Querystring: Static<typeof ownerQuery> }>(
    ROUTE,
    {
      ...described(),
      errorHandler: (error, request, reply) => {
        app.errorHandler(error, request, reply)
        record(request.method, reply.statusCode, clock.monotonicMs())
      },
    },
    (request, reply) => {
      const beganMs = clock.monotonicMs()
      const { group } = request.params
      const { view } = findGroup(context, group)
      const freshness = view.freshness()
      const version = versionText(freshness.version)
      const etag = `"${version}"`
      reply.header('etag', etag)
      const known = request.headers['if-none-match']
      if (known !== undefined && isUnchanged(known, etag)) {
        reply.code(304).send()
      } else {
        reply.header('content-type', 'application/json; charset=utf-8')
        const partition = view.partition(view.partitionOf(request.query.key))
        reply.send(ownerBody(group, partition, freshness, version, clock.wallMs()))
      }
      record(request.method, reply.statusCode, beganMs)
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

/** Names, sessions and versions hold no character that JSON escapes; addresses and reasons may. */
export function ownerBody(
  group: string,
  partition: PartitionView,
  { ageMs, stale }: Freshness,
  version: string,
  wallMs: number,
): string {
  const age = Math.round(ageMs)
  return (
    `{"group":"${group}","partition":${partition.partition},${ownerFields(partition)},` +
    `"phase":"${partition.phase}","serving":${partition.serving},"why":${textOrNull(partition.why)},` +
    `"version":"${version}","asOfMs":${wallMs - age},"ageMs":${age},"stale":${stale}}`
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
