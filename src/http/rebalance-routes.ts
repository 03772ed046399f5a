/**
 * Rebalances: planned changes of ownership as resources. Asking for one makes it durable and answers
 * 202 with its address; the rebalancer then carries it out. A dry run answers the plan as it would be
 * now and promises nothing about a later one. An `Idempotency-Key` becomes the rebalance's id, kept with
 * it: the same key again, from any server, answers the rebalance that stands (202 with its state).
 */
import { type Static, Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { memberName } from '../core/ids.ts'
import { isFinished, type RebalanceKind, type RebalanceRecord } from '../core/operator-records.ts'
import { createProblem } from './problem.ts'
import { planFor } from './rebalance-plan.ts'
import { dryRunPlan, FRESHNESS, rebalanceRecord } from './reply-schemas.ts'
import {
  type AskedBody,
  askedBody,
  groupParams,
  memberParams,
  moveBody,
  partitionParams,
  rebalanceBody,
  rebalanceParams,
} from './request-schemas.ts'
import {
  askedBy,
  changedValue,
  changeRoute,
  findGroup,
  findGroupToChange,
  type RouteContext,
  readRoute,
  sendRead,
} from './route-context.ts'
import { refTo } from './schema-forms.ts'
import { problemOfField } from './validation.ts'
import { freshnessFields } from './version-headers.ts'

type RebalanceParams = { Params: Static<typeof rebalanceParams> }

const IDEMPOTENCY_KEY = /^"?([A-Za-z0-9_-]{1,64})"?$/
const KEY_HEADER = {
  'idempotency-key': {
    description: '1-64 letters, digits, "_" or "-": the same key twice makes one rebalance.',
  },
}

export function addRebalanceRoutes(context: RouteContext): void {
  addReads(context)
  addRequest(context)
  addShortForms(context)
  addCancel(context)
}

function addReads(context: RouteContext): void {
  const { app } = context
  app.get<{ Params: Static<typeof groupParams> }>(
    '/v1/groups/:group/rebalances',
    readRoute(
      { operationId: 'listRebalances', summary: 'Rebalances kept.', params: groupParams },
      Type.Object({ rebalances: Type.Array(refTo(rebalanceRecord)), ...FRESHNESS }),
    ),
    (request, reply) => {
      const { view } = findGroup(context, request.params.group)
      return sendRead(context, request, reply, view, (fields) => ({
        rebalances: view.rebalances(),
        ...fields,
      }))
    },
  )

  app.get<RebalanceParams>(
    '/v1/groups/:group/rebalances/:id',
    readRoute(
      { operationId: 'getRebalance', summary: 'Progress of one.', params: rebalanceParams },
      Type.Object({ rebalance: refTo(rebalanceRecord), ...FRESHNESS }),
    ),
    (request, reply) => {
      const { group, id } = request.params
      const { view } = findGroup(context, group)
      const rebalance = view.rebalances().find((each) => each.id === id)
      if (rebalance === undefined) {
        throw createProblem(
          'unknown-rebalance',
          `group "${group}" keeps no rebalance "${id}": GET its rebalances lists them`,
        )
      }
      if (!isFinished(rebalance.state)) reply.header('retry-after', '1')
      return sendRead(context, request, reply, view, (fields) => ({ rebalance, ...fields }))
    },
  )
}

function addRequest(context: RouteContext): void {
  context.app.post<{
    Params: Static<typeof groupParams>
    Body: Static<typeof rebalanceBody>
  }>(
    '/v1/groups/:group/rebalances',
    changeRoute(
      context,
      {
        operationId: 'requestRebalance',
        summary: 'Balance, move one partition or drain one member; or show what that would do.',
        params: groupParams,
        body: rebalanceBody,
        headers: KEY_HEADER,
      },
      { 200: refTo(dryRunPlan), 202: refTo(rebalanceRecord) },
    ),
    async (request, reply) => {
      const body = request.body
      const kind = coreKind(body.kind ?? { type: 'balance' })
      if (body.dryRun !== true) {
        return requestRebalance(context, request, reply, request.params.group, kind, body)
      }
      const { view } = findGroupToChange(context, request, request.params.group)
      const fields = freshnessFields(view.freshness(), context.clock)
      return reply
        .header('etag', `"${fields.version}"`)
        .send({ dryRun: true, ...planFor(view, kind), ...fields })
    },
  )
}

function addShortForms(context: RouteContext): void {
  const { app } = context
  app.post<{ Params: Static<typeof partitionParams>; Body: Static<typeof moveBody> }>(
    '/v1/groups/:group/partitions/:partition/move',
    changeRoute(
      context,
      {
        operationId: 'movePartition',
        summary: 'Move one partition to a member.',
        params: partitionParams,
        body: moveBody,
        headers: KEY_HEADER,
      },
      { 202: refTo(rebalanceRecord) },
    ),
    (request, reply) => {
      const { group, partition } = request.params
      const kind = coreKind({ type: 'move', partition, to: request.body.to })
      return requestRebalance(context, request, reply, group, kind, request.body)
    },
  )

  app.post<{ Params: Static<typeof memberParams>; Body: AskedBody }>(
    '/v1/groups/:group/members/:member/drain',
    changeRoute(
      context,
      {
        operationId: 'drainMember',
        summary: "Move all of a member's partitions elsewhere.",
        params: memberParams,
        body: askedBody,
        headers: KEY_HEADER,
      },
      { 202: refTo(rebalanceRecord) },
    ),
    (request, reply) => {
      const { group, member } = request.params
      const kind = coreKind({ type: 'drain', member })
      return requestRebalance(context, request, reply, group, kind, request.body)
    },
  )
}

function addCancel(context: RouteContext): void {
  const { app } = context
  const cancel = async (request: FastifyRequest<RebalanceParams>, reply: FastifyReply) => {
    const { group, id } = request.params
    const { admin } = findGroupToChange(context, request, group)
    return accepted(reply, group, changedValue(await admin.cancelRebalance(id)))
  }
  const described = (operationId: string) =>
    changeRoute(
      context,
      {
        operationId,
        summary: 'Stop planning more moves of it; moves begun are undone or finished.',
        params: rebalanceParams,
      },
      { 202: refTo(rebalanceRecord) },
    )
  app.post<RebalanceParams>(
    '/v1/groups/:group/rebalances/:id/cancel',
    described('cancelRebalance'),
    cancel,
  )
  app.delete<RebalanceParams>(
    '/v1/groups/:group/rebalances/:id',
    described('deleteRebalance'),
    cancel,
  )
}

async function requestRebalance(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  group: string,
  kind: RebalanceKind,
  body: AskedBody,
): Promise<FastifyReply> {
  const { admin } = findGroupToChange(context, request, group)
  const key = idempotencyKey(request.headers['idempotency-key'])
  const { record, created } = changedValue(
    await admin.requestRebalance(kind, askedBy(request, body), key),
  )
  if (!created && !isSameKind(record.kind, kind)) {
    throw createProblem(
      'conflict',
      `Idempotency-Key "${record.id}" already names another rebalance (${record.kind.type}, ` +
        `${record.state}): send a new key`,
    )
  }
  return accepted(reply, group, record)
}

function accepted(reply: FastifyReply, group: string, record: RebalanceRecord): FastifyReply {
  if (!isFinished(record.state)) reply.header('retry-after', '1')
  return reply
    .code(202)
    .header('location', `/v1/groups/${group}/rebalances/${encodeURIComponent(record.id)}`)
    .send(record)
}

function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  const key = IDEMPOTENCY_KEY.exec(String(header))?.[1]
  if (key !== undefined) return key
  throw problemOfField('idempotency-key', 'must be 1-64 letters, digits, "_" or "-"')
}

function coreKind(kind: NonNullable<Static<typeof rebalanceBody>['kind']>): RebalanceKind {
  switch (kind.type) {
    case 'balance':
      return kind
    case 'move':
      return { type: 'move', partition: kind.partition, to: memberName(kind.to) }
    case 'drain':
      return { type: 'drain', member: memberName(kind.member) }
    default:
      return kind satisfies never
  }
}

function isSameKind(a: RebalanceKind, b: RebalanceKind): boolean {
  if (a.type === 'move' && b.type === 'move') return a.partition === b.partition && a.to === b.to
  if (a.type === 'drain' && b.type === 'drain') return a.member === b.member
  return a.type === b.type
}
