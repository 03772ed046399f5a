/**
 * Commands that only read: status, partitions, members, owner, rebalances, incarnation. `serve` answers
 * them from memory, so they work without quorum too; an old map is said to be one, on stderr.
 */
import type { RebalanceRecord } from '../core/operator-records.ts'
import type { MemberView, PartitionView } from '../ports/group-access.ts'
import { usageError } from './cli-error.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import {
  describeAge,
  describeGroup,
  describeKind,
  describeMark,
  phaseColour,
} from './group-text.ts'
import { groupPath, type OperatorCall, theGroup } from './operator-call.ts'
import type {
  Age,
  GroupReply,
  GroupsReply,
  MembersReply,
  OwnerReply,
  PartitionReply,
  PartitionsReply,
  RebalanceReply,
  RebalancesReply,
} from './replies.ts'
import { loadTable } from './table.ts'

const PAGE = 1000

/** Every group of the server, or those that the configuration names. */
export async function showStatus(call: OperatorCall): Promise<ExitCode> {
  const { api, output, groups } = call
  const replies: readonly GroupReply[] =
    groups.length === 0
      ? (await api.get<GroupsReply>('/v1/groups')).groups
      : await Promise.all(groups.map((group) => api.get<GroupReply>(groupPath(group))))
  output.answer({ url: api.url, groups: replies }, () =>
    replies.length === 0
      ? `${api.url} has no group yet: start a worker`
      : replies.map((reply) => describeGroup(reply, output.colors)).join('\n'),
  )
  return EXIT.ok
}

export async function showPartitions(call: OperatorCall, number?: string): Promise<ExitCode> {
  const group = await theGroup(call)
  if (number !== undefined) return showPartition(call, group, number)
  const { api, output, options } = call
  const limit = Number(options['limit'] ?? Number.MAX_SAFE_INTEGER)
  const query = new URLSearchParams()
  if (options['owner'] !== undefined) query.set('owner', String(options['owner']))
  if (options['state'] !== undefined) query.set('state', String(options['state']))
  if (options['moving'] === true) query.set('moving', 'true')
  const partitions: PartitionView[] = []
  let page: PartitionsReply
  do {
    query.set('limit', String(Math.min(PAGE, limit - partitions.length)))
    page = await api.get<PartitionsReply>(`${groupPath(group, 'partitions')}?${query}`)
    partitions.push(...page.partitions)
    query.set('cursor', page.nextCursor ?? '')
  } while (page.nextCursor !== null && partitions.length < limit)
  warnOfAge(call, page)
  const table = await loadTable(output)
  output.answer({ group, ...page, partitions }, () =>
    table(
      ['PARTITION', 'PHASE', 'OWNER', 'GENERATION', 'SERVING', 'MOVES TO', 'WHY'],
      partitions.map((each) => [
        String(each.partition),
        phaseColour(each.phase, output.colors)(each.phase),
        each.owner === null ? '-' : `${each.owner.member}${each.owner.live ? '' : ' (gone)'}`,
        String(each.generation),
        each.serving ? 'yes' : 'no',
        each.move === null ? '-' : (each.move.to ?? 'nobody'),
        each.why ?? '',
      ]),
    ),
  )
  return EXIT.ok
}

async function showPartition(call: OperatorCall, group: string, number: string): Promise<ExitCode> {
  const { api, output } = call
  const reply = await api.get<PartitionReply>(
    groupPath(group, 'partitions', String(partitionNumber(number))),
  )
  warnOfAge(call, reply)
  const table = await loadTable(output)
  output.answer({ group, ...reply }, () => table([], partitionLines(reply.partition)))
  return EXIT.ok
}

function partitionLines(view: PartitionView): readonly (readonly string[])[] {
  const { owner, previous, move } = view
  return [
    ['partition', String(view.partition)],
    ['phase', `${view.phase}${view.disabled ? ', disabled' : ''}`],
    ['owner', owner === null ? 'nobody' : `${owner.member}, session ${owner.session}`],
    ['address', owner?.address || '-'],
    ['owner lives', owner === null ? '-' : String(owner.live)],
    ['serving', String(view.serving)],
    ['generation', `${view.generation} in incarnation ${view.incarnation}`],
    ['granted by', view.how ?? '-'],
    ['move', move === null ? '-' : `to ${move.to ?? 'nobody'} (${move.reason}, by ${move.by})`],
    [
      'previous owner',
      previous === null ? '-' : `${previous.member}, generation ${previous.generation}`,
    ],
    ['changed', new Date(view.changedAtMs).toISOString()],
    ['why', view.why ?? '-'],
  ]
}

export async function showMembers(call: OperatorCall): Promise<ExitCode> {
  const { api, output } = call
  const group = await theGroup(call)
  const reply = await api.get<MembersReply>(groupPath(group, 'members'))
  warnOfAge(call, reply)
  const table = await loadTable(output)
  output.answer({ group, ...reply }, () =>
    table(
      ['MEMBER', 'STATE', 'OWNED', 'WEIGHT', 'CAPACITY', 'ZONE', 'ADDRESS', 'SESSION'],
      reply.members.map((member) => [
        member.member,
        memberState(member),
        String(member.owned),
        String(member.weight),
        member.capacity === null ? '-' : String(member.capacity),
        member.zone || '-',
        member.address || '-',
        member.session,
      ]),
    ),
  )
  return EXIT.ok
}

function memberState(member: MemberView): string {
  const marks = [
    member.evicting ? 'evicting' : '',
    member.cordon === null ? '' : describeMark('cordoned', member.cordon),
  ].filter((mark) => mark !== '')
  return [member.state, ...marks].join(', ')
}

export async function showOwner(call: OperatorCall, key: string): Promise<ExitCode> {
  const group = await theGroup(call)
  const path = `${groupPath(group, 'owner')}?${new URLSearchParams({ key })}`
  const reply = await call.api.get<OwnerReply>(path)
  warnOfAge(call, reply)
  call.output.answer({ key, ...reply }, () => {
    const where = `partition ${reply.partition}`
    if (reply.owner === null) return `nobody owns ${where}: ${reply.why ?? reply.phase}`
    const { member, address, live } = reply.owner
    const at = address === '' ? '' : ` at ${address}`
    const state = live ? (reply.serving ? 'serving' : 'not serving yet') : 'its session is gone'
    return `${member}${at} owns ${where}, generation ${reply.token?.generation ?? '?'} (${state})`
  })
  return EXIT.ok
}

export async function showRebalances(call: OperatorCall, id?: string): Promise<ExitCode> {
  const { api, output } = call
  const group = await theGroup(call)
  const path = groupPath(group, 'rebalances', ...(id === undefined ? [] : [id]))
  const table = await loadTable(output)
  const rows = (records: readonly RebalanceRecord[]) =>
    table(
      ['ID', 'STATE', 'WHAT', 'MOVED', 'REQUESTED', 'BY', 'REASON', 'NOTE'],
      records.map((each) => [
        each.id,
        each.state,
        describeKind(each.kind),
        `${each.moved}/${each.planned ?? '?'}`,
        new Date(each.requestedAtMs).toISOString(),
        each.by,
        each.reason,
        each.note,
      ]),
    )
  if (id !== undefined) {
    const { rebalance } = await api.get<RebalanceReply>(path)
    output.answer(rebalance, () => rows([rebalance]))
    return EXIT.ok
  }
  const reply = await api.get<RebalancesReply>(path)
  output.answer({ group, ...reply }, () =>
    reply.rebalances.length === 0 ? 'no rebalance was asked for' : rows(reply.rebalances),
  )
  return EXIT.ok
}

export async function showIncarnation(call: OperatorCall): Promise<ExitCode> {
  const group = await theGroup(call)
  const reply = await call.api.get<GroupReply>(groupPath(group))
  warnOfAge(call, reply)
  call.output.answer({ group, incarnation: reply.incarnation, alarms: reply.alarms }, () =>
    [
      String(reply.incarnation),
      ...reply.alarms.map((alarm) => call.output.colors.red(`ALARM ${alarm}`)),
    ].join('\n'),
  )
  return EXIT.ok
}

/** @throws CliError `usage` unless a whole number. */
export function partitionNumber(text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text)
  throw usageError(`partition "${text}" is no number: \`tenure partitions\` lists them`)
}

function warnOfAge(call: OperatorCall, age: Age): void {
  if (age.stale && !call.output.json) call.output.note(describeAge(age))
}
