/**
 * Operators' durable marks and settings: cordon, freeze, disabled, eviction, incarnation, config. Each
 * is in the store before it is answered; the rebalancer and the members act on it.
 */
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { assertSameGroup } from '../core/group-config.ts'
import { memberName } from '../core/ids.ts'
import type { OperatorMark } from '../core/operator-records.ts'
import type { By, Change, GroupAdmin } from '../ports/group-access.ts'
import { groupConfig, groupSettings } from './config-schemas.ts'
import { operatorMark } from './reply-schemas.ts'
import {
  type AskedBody,
  askedBody,
  freezeBody,
  groupParams,
  memberParams,
  partitionParams,
} from './request-schemas.ts'
import {
  askedBy,
  changedValue,
  changeRoute,
  findGroupToChange,
  NO_CONTENT,
  type RouteContext,
} from './route-context.ts'
import { refTo } from './schema-forms.ts'

type GroupParams = { Params: Static<typeof groupParams> }

export function addOperatorRoutes(context: RouteContext): void {
  addConfig(context)
  addFreeze(context)
  addMark(context, {
    name: 'Cordon',
    url: '/v1/groups/:group/members/:member/cordon',
    params: memberParams,
    summary: 'this member name gets nothing',
    set: (admin, { member }, by) => admin.setCordon(memberName(member), by),
    clear: (admin, { member }) => admin.clearCordon(memberName(member)),
  } satisfies Mark<Static<typeof memberParams>>)
  addMark(context, {
    name: 'GroupDisabled',
    url: '/v1/groups/:group/disabled',
    params: groupParams,
    summary: 'no owner at all, for the whole group',
    set: (admin, _params, by) => admin.setDisabled(null, by),
    clear: (admin) => admin.clearDisabled(null),
  } satisfies Mark<Static<typeof groupParams>>)
  addMark(context, {
    name: 'PartitionDisabled',
    url: '/v1/groups/:group/partitions/:partition/disabled',
    params: partitionParams,
    summary: 'no owner at all, for one partition',
    set: (admin, { partition }, by) => admin.setDisabled(partition, by),
    clear: (admin, { partition }) => admin.clearDisabled(partition),
  } satisfies Mark<Static<typeof partitionParams>>)
  addEvict(context)
  addIncarnation(context)
}

/** A durable mark that is set and undone under one address. */
type Mark<Params extends { group: string }> = {
  readonly name: string
  readonly url: string
  readonly params: TSchema
  readonly summary: string
  set(admin: GroupAdmin, params: Params, by: By): Promise<Change<OperatorMark>>
  clear(admin: GroupAdmin, params: Params): Promise<Change<null>>
}

function addMark<Params extends { group: string }>(
  context: RouteContext,
  mark: Mark<Params>,
): void {
  const { app } = context
  const described = { params: mark.params }
  app.put(
    mark.url,
    changeRoute(
      context,
      {
        ...described,
        operationId: `set${mark.name}`,
        summary: `Set: ${mark.summary}.`,
        body: askedBody,
      },
      { 200: refTo(operatorMark) },
    ),
    async (request) => {
      const params = request.params as Params
      const { admin } = findGroupToChange(context, request, params.group)
      const by = askedBy(request, request.body as AskedBody)
      return changedValue(await mark.set(admin, params, by))
    },
  )
  app.delete(
    mark.url,
    changeRoute(
      context,
      { ...described, operationId: `clear${mark.name}`, summary: `Undo: ${mark.summary}.` },
      { 204: NO_CONTENT },
    ),
    async (request, reply) => {
      const params = request.params as Params
      const { admin } = findGroupToChange(context, request, params.group)
      changedValue(await mark.clear(admin, params))
      return reply.code(204).send()
    },
  )
}

function addConfig(context: RouteContext): void {
  context.app.patch<GroupParams & { Body: Static<typeof groupSettings> }>(
    '/v1/groups/:group/config',
    changeRoute(
      context,
      {
        operationId: 'changeConfig',
        summary: 'Change settings; partitions, leaseTtlMs and fenced stay as they are.',
        params: groupParams,
        body: groupSettings,
      },
      { 200: Type.Object({ config: refTo(groupConfig) }) },
    ),
    async (request) => {
      const { view, admin } = findGroupToChange(context, request, request.params.group)
      assertSameGroup(request.body, view.config())
      const { partitions: _p, leaseTtlMs: _t, fenced: _f, ...settings } = request.body
      if (Object.keys(settings).length === 0) return { config: view.config() }
      return { config: changedValue(await admin.changeConfig(settings)) }
    },
  )
}

function addFreeze(context: RouteContext): void {
  const { app } = context
  app.put<GroupParams & { Body: Static<typeof freezeBody> }>(
    '/v1/groups/:group/freeze',
    changeRoute(
      context,
      {
        operationId: 'setFreeze',
        summary: 'Set: no planned moves; elections and operators’ own moves go on.',
        params: groupParams,
        body: freezeBody,
      },
      { 200: refTo(operatorMark) },
    ),
    async (request) => {
      const { admin } = findGroupToChange(context, request, request.params.group)
      const by = { ...askedBy(request, request.body), untilMs: request.body.untilMs ?? null }
      return changedValue(await admin.setFreeze(by))
    },
  )
  app.delete<GroupParams>(
    '/v1/groups/:group/freeze',
    changeRoute(
      context,
      { operationId: 'clearFreeze', summary: 'Undo: no planned moves.', params: groupParams },
      { 204: NO_CONTENT },
    ),
    async (request, reply) => {
      const { admin } = findGroupToChange(context, request, request.params.group)
      changedValue(await admin.clearFreeze())
      return reply.code(204).send()
    },
  )
}

function addEvict(context: RouteContext): void {
  context.app.post<{ Params: Static<typeof memberParams>; Body: AskedBody }>(
    '/v1/groups/:group/members/:member/evict',
    changeRoute(
      context,
      {
        operationId: 'evictMember',
        summary: 'End a member’s session without a drain: it loses all its partitions.',
        params: memberParams,
        body: askedBody,
      },
      { 202: refTo(operatorMark) },
    ),
    async (request, reply) => {
      const { group, member } = request.params
      const { admin } = findGroupToChange(context, request, group)
      const by = askedBy(request, request.body)
      return reply.code(202).send(changedValue(await admin.evict(memberName(member), by)))
    },
  )
}

function addIncarnation(context: RouteContext): void {
  context.app.post<GroupParams & { Body: AskedBody }>(
    '/v1/groups/:group/incarnation/raise',
    changeRoute(
      context,
      {
        operationId: 'raiseIncarnation',
        summary: 'After a restore of the store: every partition is granted anew.',
        params: groupParams,
        body: askedBody,
      },
      { 200: Type.Object({ incarnation: Type.Integer() }) },
    ),
    async (request) => {
      const { admin } = findGroupToChange(context, request, request.params.group)
      const by = askedBy(request, request.body)
      return { incarnation: changedValue(await admin.raiseIncarnation(by)) }
    },
  )
}
