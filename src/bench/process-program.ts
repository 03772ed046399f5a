/**
 * The program of one process of the benchmark: answers the calls that its parent sends (`ProcessCalls`)
 * and ends when the parent does.
 */
import type { FromProcess, ToProcess } from './bench-processes.ts'
import { type JoinArgument, MemberProcess } from './member-process.ts'
import { type RawPrepareArgument, RawProcess } from './raw-process.ts'

const say = (message: FromProcess): void => {
  if (process.connected) process.send?.(message)
}
const members = new MemberProcess((held) => say({ type: 'held', held }))
const raw = new RawProcess()

const calls = {
  ping: async (_: null) => process.pid,
  join: (argument: JoinArgument) => members.join(argument),
  notes: async ({ reset }: { readonly reset: boolean }) => members.notes(reset),
  leave: (argument: { readonly members: readonly string[] | null; readonly force: boolean }) =>
    members.leave(argument.members, argument.force),
  usage: async (_: null) => members.usage(),
  rawPrepare: (argument: RawPrepareArgument) => raw.prepare(argument),
  rawGrant: ({ inFlight }: { readonly inFlight: number }) => raw.grant(inFlight),
  rawCounted: async (_: null) => raw.counted(),
  rawEnd: (_: null) => raw.end(),
}
export type ProcessCalls = typeof calls

process.on('message', async ({ id, name, argument }: ToProcess) => {
  try {
    const call = calls[name as keyof ProcessCalls] as (argument: unknown) => Promise<unknown>
    say({ type: 'answer', id, value: await call(argument) })
  } catch (error: unknown) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error)
    say({ type: 'error', id, detail })
  }
})
process.once('disconnect', () => process.exit(0))
