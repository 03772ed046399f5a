/**
 * Reads of a group, its partitions and its members, answered from memory: they work without the store
 * too and say how old the answer is.
 */
import { type Static, Type } from '@sinclair/typebox'
import { groupConfig } from './config-schemas.ts'
import { pageOfPartitions } from './partition-page.ts'
import { createProblem } from './problem.ts'
import { FRESHNESS, groupSummary, memberView, partitionView } from './reply-schemas.ts'
import { groupParams, memberParams, partitionParams, partitionsQuery } from './request-schemas.ts'
import { findGroup, type RouteContext, readRoute, sendRead } from './route-context.ts'
import { refTo } from './schema-forms.ts'
import { freshnessFields } from './version-headers.ts'

export function addGroupRoutes(context: RouteContext): void {
  addGroups(context)
  addPartitions(context)
  addMembers(context)
}

function addGroups(context: RouteContext): void {
  const { app, groups, clock } = context
  const listed = Type.Object({ groups: Type.Array(refTo(groupSummary)) })
  app.get(
    '/v1/groups',
    readRoute({ operationId: 'listGroups', summary: 'All groups seen here.' }, listed),
    (_request, reply) => {
      const summaries = groups.names().flatMap((name) => {
        const view = groups.find(name)?.view
        if (view === undefined) return []
        return [{ ...view.summary(), ...freshnessFields(view.freshness(), clock) }]
      })
      return reply.header('cache-control', 'no-cache').send({ groups: summaries })
    },
  )

  app.get<{ Params: Static<typeof groupParams> }>(
    '/v1/groups/:group',
    readRoute(
      { operationId: 'getGroup', summary: 'Counts and state of a group.', params: groupParams },
      refTo(groupSummary),
    ),
    (request, reply) => {
      const { view } = findGroup(context, request.params.group)
      return sendRead(context, request, reply, view, (fields) => ({ ...view.summary(), ...fields }))
    },
  )

  app.get<{ Params: Static<typeof groupParams> }>(
    '/v1/groups/:group/config',
    readRoute(
      { operationId: 'getConfig', summary: 'Settings of a group.', params: groupParams },
      Type.Object({ config: refTo(groupConfig), ...FRESHNESS }),
    ),
    (request, reply) => {
      const { view } = findGroup(context, request.params.group)
      return sendRead(context, request, reply, view, (fields) => ({
        config: view.config(),
        ...fields,
      }))
    },
  )
}

function addPartitions(context: RouteContext): void {
  const { app } = context
  const page = Type.Object({
    partitions: Type.Array(refTo(partitionView)),
    nextCursor: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'Give it as `cursor` for the next page; null: this was the last.',
    }),
    ...FRESHNESS,
  })
  app.get<{ Params: Static<typeof groupParams>; Querystring: Static<typeof partitionsQuery> }>(
    '/v1/groups/:group/partitions',
    readRoute(
      {
        operationId: 'listPartitions',
        summary: 'Partitions by number, a page at a time.',
        description: 'Pages are read at the version that each carries, not at one for all.',
        params: groupParams,
        querystring: partitionsQuery,
      },
      page,
    ),
    (request, reply) => {
      const { view } = findGroup(context, request.params.group)
      return sendRead(context, request, reply, view, (fields) => ({
        ...pageOfPartitions(view, request.query),
        ...fields,
      }))
    },
  )

  app.get<{ Params: Static<typeof partitionParams> }>(
    '/v1/groups/:group/partitions/:partition',
    readRoute(
      {
        operationId: 'getPartition',
        summary: 'One partition; a vacant one has owner null and says why.',
        params: partitionParams,
      },
      Type.Object({ partition: refTo(partitionView), ...FRESHNESS }),
    ),
    (request, reply) => {
      const { view } = findGroup(context, request.params.group)
      const { partition } = request.params
      demandPartition(partition, view.config().partitions)
      return sendRead(context, request, reply, view, (fields) => ({
        partition: view.partition(partition),
        ...fields,
      }))
    },
  )
}

function addMembers(context: RouteContext): void {
  const { app } = context
  app.get<{ Params: Static<typeof groupParams> }>(
    '/v1/groups/:group/members',
    readRoute(
      { operationId: 'listMembers', summary: 'Members with a session.', params: groupParams },
      Type.Object({ members: Type.Array(refTo(memberView)), ...FRESHNESS }),
    ),
    (request, reply) => {
      const { view } = findGroup(context, request.params.group)
      return sendRead(context, request, reply, view, (fields) => ({
        members: view.members(),
        ...fields,
      }))
    },
  )

  app.get<{ Params: Static<typeof memberParams> }>(
    '/v1/groups/:group/members/:member',
    readRoute(
      { operationId: 'getMember', summary: 'One member.', params: memberParams },
      Type.Object({ member: refTo(memberView), ...FRESHNESS }),
    ),
    (request, reply) => {
      const { group, member } = request.params
      const { view } = findGroup(context, group)
      const found = view.members().find((each) => each.member === member)
      if (found === undefined) {
        throw createProblem(
          'unknown-member',
          `group "${group}" has no member "${member}" with a session: GET its members lists them`,
        )
      }
      return sendRead(context, request, reply, view, (fields) => ({ member: found, ...fields }))
    },
  )
}

/** @throws ProblemError `unknown-partition` unless 0 .. P-1. */
export function demandPartition(partition: number, partitions: number): void {
  if (partition < partitions) return
  throw createProblem(
    'unknown-partition',
    `partition ${partition} does not exist: this group has 0 to ${partitions - 1}`,
  )
}
