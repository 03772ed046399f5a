/**
 * `owner?key=`: who owns this key's partition. The hot path: no serializer, no hooks (what they would do is
 * done here) and no request id but in refusals. What is said of a partition is kept as text until the map
 * changes; version, age and whether it is served are put in with each answer.
 */
import type { Static } from '@sinclair/typebox'
import type { PartitionId } from '../core/ids.ts'
import type { GroupView, PartitionView } from '../ports/group-access.ts'
import { ownerView } from './reply-schemas.ts'
import { ownerQuery } from './request-schemas.ts'
import { findGroup, type RouteContext, readRoute } from './route-context.ts'
import { refTo } from './schema-forms.ts'
import { isUnchanged, versionText } from './version-headers.ts'

const ROUTE = '/v1/groups/:group/owner'
const JSON_TYPE = 'application/json; charset=utf-8'

export function addOwnerRoute(context: RouteContext): void {
  const { app, clock, telemetry } = context
  const texts = new OwnerTexts()
  const record = (method: string, status: number, beganMs: number) => {
    const tookMs = clock.monotonicMs() - beganMs
    telemetry.record({ type: 'http-request', route: ROUTE, method, status, tookMs })
  }
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
      const known = request.headers['if-none-match']
      if (known !== undefined && isUnchanged(known, etag)) {
        reply.header('etag', etag).code(304).send()
        record(request.method, 304, beganMs)
        return
      }
      const partition = view.partitionOf(request.query.key)
      const text = texts.of(group, view, partition)
      const serving = view.isServing(partition)
      const age = Math.round(freshness.ageMs)
      const body =
        `${text.head}${serving}${text.rest}"version":"${version}",` +
        `"asOfMs":${clock.wallMs() - age},"ageMs":${age},"stale":${freshness.stale}}`
      // Past the framework, whose reply costs as much again as all of this.
      reply.hijack()
      const length = Buffer.byteLength(body)
      reply.raw.writeHead(200, ['content-type', JSON_TYPE, 'etag', etag, 'content-length', length])
      reply.raw.end(request.method === 'HEAD' ? undefined : body)
      record(request.method, 200, beganMs)
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

/** Around the word that tells whether it is served. */
type OwnerText = { readonly head: string; readonly rest: string }

const TEXTS_KEPT_MAX = 10_000

class OwnerTexts {
  private readonly groups = new Map<
    string,
    {
      readonly view: GroupView
      readonly edition: number
      readonly texts: Map<PartitionId, OwnerText>
    }
  >()

  of(group: string, view: GroupView, partition: PartitionId): OwnerText {
    const edition = view.edition()
    let kept = this.groups.get(group)
    if (kept === undefined || kept.view !== view || kept.edition !== edition) {
      kept = { view, edition, texts: new Map() }
      this.groups.set(group, kept)
    }
    const { texts } = kept
    let text = texts.get(partition)
    if (text !== undefined) return text
    if (texts.size >= TEXTS_KEPT_MAX) texts.clear()
    text = ownerText(group, view.partition(partition))
    texts.set(partition, text)
    return text
  }
}

/** Names, sessions and versions hold no character that JSON escapes; addresses and reasons may. */
function ownerText(group: string, partition: PartitionView): OwnerText {
  const why = partition.why === null ? 'null' : JSON.stringify(partition.why)
  return {
    head:
      `{"group":"${group}","partition":${partition.partition},${ownerFields(partition)},` +
      `"phase":"${partition.phase}","serving":`,
    rest: `,"why":${why},`,
  }
}

function ownerFields({ owner, incarnation, generation }: PartitionView): string {
  if (owner === null) return '"owner":null,"token":null'
  return (
    `"owner":{"member":"${owner.member}","address":${JSON.stringify(owner.address)},"live":${owner.live}},` +
    `"token":{"incarnation":${incarnation},"generation":${generation},"session":"${owner.session}"}`
  )
}
