/**
 * Operators' changes: each is durable in etcd before `serve` answers. What takes time (rebalance, move,
 * drain) answers with a rebalance that `--wait` follows.
 */
import { isFinished, type OperatorMark, type RebalanceRecord } from '../core/operator-records.ts'
import type { Method } from './api-client.ts'
import { CliError } from './cli-error.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { describeMark } from './group-text.ts'
import { groupPath, type OperatorCall, theGroup } from './operator-call.ts'
import { partitionNumber } from './read-commands.ts'
import type { PlanReply, RebalancesReply } from './replies.ts'
import { loadTable } from './table.ts'
import { describeProgress, waitForRebalance } from './wait-for-rebalance.ts'

export async function rebalance(call: OperatorCall): Promise<ExitCode> {
  const group = await theGroup(call)
  const path = groupPath(group, 'rebalances')
  if (call.options['dryRun'] === true) {
    const body = { ...asked(call), kind: { type: 'balance' }, dryRun: true }
    return showPlan(call, await call.api.call<PlanReply>({ method: 'POST', path, body }))
  }
  const { id } = call.options
  const record = await call.api.call<RebalanceRecord>({
    method: 'POST',
    path,
    body: { ...asked(call), kind: { type: 'balance' } },
    headers: id === undefined ? {} : { 'idempotency-key': String(id) },
  })
  return follow(call, group, record)
}

async function showPlan(call: OperatorCall, plan: PlanReply): Promise<ExitCode> {
  const table = await loadTable(call.output)
  call.output.answer(plan, () => {
    if (plan.count === 0) return 'nothing would move: the group is balanced'
    const rows = plan.moves.map(({ partition, from, to }) => [
      String(partition),
      from ?? 'nobody',
      to ?? 'nobody',
    ])
    const more = plan.truncated ? `\n… and ${plan.count - plan.moves.length} more` : ''
    return `${table(['PARTITION', 'FROM', 'TO'], rows)}${more}\n${plan.count} would move`
  })
  return EXIT.ok
}

export async function cancelRebalance(call: OperatorCall, id: string): Promise<ExitCode> {
  const group = await theGroup(call)
  const record = await postCancel(call, group, id)
  call.output.answer(record, () => describeProgress(record))
  return EXIT.ok
}

export async function movePartition(
  call: OperatorCall,
  partition: string,
  to: string,
): Promise<ExitCode> {
  const group = await theGroup(call)
  const path = groupPath(group, 'partitions', String(partitionNumber(partition)), 'move')
  const body = { ...asked(call), to }
  return follow(call, group, await call.api.call<RebalanceRecord>({ method: 'POST', path, body }))
}

export async function drainMember(call: OperatorCall, member: string): Promise<ExitCode> {
  const group = await theGroup(call)
  const path = groupPath(group, 'members', member, 'drain')
  const body = asked(call)
  return follow(call, group, await call.api.call<RebalanceRecord>({ method: 'POST', path, body }))
}

/** Cancels the member's drains that still run, then lifts its cordon: it may be given partitions again. */
export async function undrainMember(call: OperatorCall, member: string): Promise<ExitCode> {
  const group = await theGroup(call)
  const { rebalances } = await call.api.get<RebalancesReply>(groupPath(group, 'rebalances'))
  const running = rebalances.filter(
    ({ kind, state }) => kind.type === 'drain' && kind.member === member && !isFinished(state),
  )
  const cancelled: RebalanceRecord[] = []
  for (const { id } of running) cancelled.push(await postCancel(call, group, id))
  try {
    await call.api.call({ method: 'DELETE', path: groupPath(group, 'members', member, 'cordon') })
  } catch (error) {
    // A cancelled drain lifts its own cordon, perhaps before this request arrives.
    const isLifted = error instanceof CliError && error.exitCode === EXIT.notFound
    if (!isLifted || cancelled.length === 0) throw error
  }
  call.output.answer({ group, member, cancelled }, () =>
    [
      ...cancelled.map(describeProgress),
      `${member} may be given partitions again: \`tenure rebalance\` gives it its share now`,
    ].join('\n'),
  )
  return EXIT.ok
}

/** Cordon, freeze and disable, of which the same verb's opposite deletes the mark. */
export type Marking = {
  readonly path: readonly string[]
  /** `frozen`, `cordoned w-1`. */
  readonly done: string
  /** `thawed`, `uncordoned w-1`. */
  readonly undone: string
}

export async function setMark(call: OperatorCall, marking: Marking): Promise<ExitCode> {
  return putMark(call, marking, 'PUT', {})
}

export async function freezeGroup(call: OperatorCall): Promise<ExitCode> {
  const forMs = call.options['for']
  const untilMs = typeof forMs === 'number' ? { untilMs: call.context.clock.wallMs() + forMs } : {}
  return putMark(call, FREEZE, 'PUT', untilMs)
}

export async function evictMember(call: OperatorCall, member: string): Promise<ExitCode> {
  const path = ['members', member, 'evict']
  return putMark(call, { path, done: `evicting ${member}`, undone: '' }, 'POST', {})
}

async function putMark(
  call: OperatorCall,
  marking: Marking,
  method: Method,
  more: object,
): Promise<ExitCode> {
  const group = await theGroup(call)
  const path = groupPath(group, ...marking.path)
  const body = { ...asked(call), ...more }
  const mark = await call.api.call<OperatorMark>({ method, path, body })
  call.output.answer({ group, ...mark }, () => `${group}: ${describeMark(marking.done, mark)}`)
  return EXIT.ok
}

export async function clearMark(call: OperatorCall, marking: Marking): Promise<ExitCode> {
  const group = await theGroup(call)
  await call.api.call({ method: 'DELETE', path: groupPath(group, ...marking.path) })
  call.output.answer({ group, done: marking.undone }, () => `${group}: ${marking.undone}`)
  return EXIT.ok
}

export const FREEZE: Marking = { path: ['freeze'], done: 'frozen', undone: 'thawed' }

export function cordonOf(member: string): Marking {
  return {
    path: ['members', member, 'cordon'],
    done: `${member} cordoned`,
    undone: `${member} uncordoned`,
  }
}

/** The whole group, or the partition that `--partition` names. */
export function disablingOf(call: OperatorCall): Marking {
  const partition = call.options['partition']
  if (partition === undefined) return { path: ['disabled'], done: 'disabled', undone: 'enabled' }
  const number = partitionNumber(String(partition))
  return {
    path: ['partitions', String(number), 'disabled'],
    done: `partition ${number} disabled`,
    undone: `partition ${number} enabled`,
  }
}

export async function raiseIncarnation(call: OperatorCall): Promise<ExitCode> {
  const group = await theGroup(call)
  const path = groupPath(group, 'incarnation', 'raise')
  const reply = await call.api.call<{ readonly incarnation: number }>({
    method: 'POST',
    path,
    body: asked(call),
  })
  call.output.answer({ group, ...reply }, () => `${group}: incarnation ${reply.incarnation}`)
  return EXIT.ok
}

async function postCancel(call: OperatorCall, group: string, id: string): Promise<RebalanceRecord> {
  const path = groupPath(group, 'rebalances', id, 'cancel')
  return call.api.call<RebalanceRecord>({ method: 'POST', path, body: {} })
}

async function follow(
  call: OperatorCall,
  group: string,
  record: RebalanceRecord,
): Promise<ExitCode> {
  const { options, output } = call
  if (typeof record?.id !== 'string') {
    throw new CliError('failed', EXIT.failed, `${call.api.url} answered without a rebalance's id`)
  }
  if (options['wait'] === true) {
    return waitForRebalance(call, group, record, Number(options['timeout']))
  }
  output.answer(record, () => describeProgress(record))
  return EXIT.ok
}

/** Who asks and why, kept with the change. */
function asked(call: OperatorCall): { readonly by: string; readonly reason?: string } {
  const { reason } = call.options
  const by = call.context.operator.slice(0, 128)
  return reason === undefined ? { by } : { by, reason: String(reason) }
}
