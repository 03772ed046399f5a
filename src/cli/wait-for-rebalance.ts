/**
 * `--wait`: follows a rebalance until it ends, or until `--timeout` has passed. A `serve` process that
 * is away meanwhile is asked again: another one goes on with the rebalance, which is durable.
 */
import { isFinished, type RebalanceRecord } from '../core/operator-records.ts'
import { pause } from '../runtime/waiting.ts'
import { CliError, interruptedError } from './cli-error.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { describeKind } from './group-text.ts'
import { groupPath, type OperatorCall } from './operator-call.ts'
import type { RebalanceReply } from './replies.ts'
import { describeDuration } from './setting-kinds.ts'

const POLL_MS = 250
const CALL_TIMEOUT_MS = 5000

/** Prints the record once it has ended. Exit code 0 only for `done`. */
export async function waitForRebalance(
  call: OperatorCall,
  group: string,
  requested: RebalanceRecord,
  timeoutMs: number,
): Promise<ExitCode> {
  const { context, output } = call
  const endMs = context.clock.monotonicMs() + timeoutMs
  let record = requested
  let fault = ''
  let said = ''
  for (;;) {
    if (isFinished(record.state)) return answerFinished(call, record)
    const progress = describeProgress(record)
    if (progress !== said) output.note(progress)
    said = progress
    await pause(context.clock, POLL_MS, context.interrupted)
    const leftMs = endMs - context.clock.monotonicMs()
    if (context.interrupted.aborted) {
      output.note(`it goes on: \`tenure rebalance cancel ${record.id}\` ends it`)
      throw interruptedError()
    }
    if (leftMs <= 0) throw overdue(record, timeoutMs, fault)
    try {
      record = await readRecord(call, group, record.id, Math.min(CALL_TIMEOUT_MS, leftMs))
      fault = ''
    } catch (error) {
      if (!isPassing(error)) throw error
      fault = `; ${error.message}`
    }
  }
}

async function readRecord(
  call: OperatorCall,
  group: string,
  id: string,
  timeoutMs: number,
): Promise<RebalanceRecord> {
  const path = groupPath(group, 'rebalances', id)
  const reply = await call.api.call<RebalanceReply>({
    method: 'GET',
    path,
    timeoutMs: Math.max(1, Math.ceil(timeoutMs)),
  })
  return reply.rebalance
}

function isPassing(error: unknown): error is CliError {
  return (
    error instanceof CliError &&
    (error.exitCode === EXIT.unreachable || error.exitCode === EXIT.timedOut)
  )
}

function overdue(record: RebalanceRecord, timeoutMs: number, fault: string): CliError {
  return new CliError(
    'timed-out',
    EXIT.timedOut,
    `${describeProgress(record)} after ${describeDuration(timeoutMs)}${fault}: it goes on; \`tenure rebalances ${record.id}\` shows it, \`tenure rebalance cancel ${record.id}\` ends it`,
  )
}

function answerFinished(call: OperatorCall, record: RebalanceRecord): ExitCode {
  call.output.answer(record, () => describeProgress(record))
  return record.state === 'done' ? EXIT.ok : EXIT.failed
}

/** `drain w-1 (r-17): running, 12 of 40 moved`. */
export function describeProgress(record: RebalanceRecord): string {
  const { id, kind, state, planned, moved, note } = record
  const counts = planned === null ? 'not planned yet' : `${moved} of ${planned} moved`
  return `${describeKind(kind)} (${id}): ${state}, ${counts}${note === '' ? '' : `; ${note}`}`
}
