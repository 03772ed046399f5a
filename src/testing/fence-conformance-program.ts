/**
 * The child's side of an owner that is a process of its own. A program of three lines makes one:
 *
 *   const pool = new Pool({ connectionString: process.argv[2] })
 *   const fence = createPostgresFence(pool)
 *   serveFenceOwner({ fence, effectOf: (token, number, step) => async (client) => { ... } })
 *
 * Lines of JSON, commands on standard input, reports on standard output, one command at a time:
 *
 *   { id, do: 'seal', token }                     -> { id, is: 'sealed', outcome } | { id, is: 'failed', message }
 *   { id, do: 'write', token, number, stopAt }    -> { id, is: 'calling' }, then if it gets to the step
 *                                                    { id, is: 'stopping' } (it stops itself by SIGSTOP)
 *                                                    { id, is: 'resumed' }, at last { id, is: 'wrote', outcome }
 *
 * `during` is the parent's affair: it sends SIGSTOP some time after `calling`. The program ends when its
 * standard input does. It must print nothing else to standard output.
 */
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Token } from '../core/token.ts'
import type { SealOutcome } from '../fence/fence.ts'
import {
  type FenceUnderTest,
  runGuarded,
  type StopAt,
  type WriteOutcome,
} from './fence-conformance-owner.ts'

export type OwnerCommand =
  | { readonly id: number; readonly do: 'seal'; readonly token: Token }
  | {
      readonly id: number
      readonly do: 'write'
      readonly token: Token
      readonly number: number
      readonly stopAt: StopAt | null
    }

export type OwnerReport =
  | { readonly id: number; readonly is: 'ready' | 'calling' | 'stopping' | 'resumed' }
  | { readonly id: number; readonly is: 'sealed'; readonly outcome: SealOutcome }
  | { readonly id: number; readonly is: 'wrote'; readonly outcome: WriteOutcome }
  | { readonly id: number; readonly is: 'failed'; readonly message: string }

const STANDARD_OUTPUT = 1

/** Serves until standard input ends, then ends the process. */
export async function serveFenceOwner<Effect, Result>(
  under: FenceUnderTest<Effect, Result>,
): Promise<void> {
  report({ id: 0, is: 'ready' })
  for await (const line of createInterface({ input: process.stdin })) {
    await obey(under, JSON.parse(line) as OwnerCommand)
  }
  await under.close?.()
  process.exit(0)
}

async function obey<Effect, Result>(
  under: FenceUnderTest<Effect, Result>,
  command: OwnerCommand,
): Promise<void> {
  const { id } = command
  if (command.do === 'seal') {
    try {
      report({ id, is: 'sealed', outcome: await under.fence.seal(command.token) })
    } catch (error) {
      report({ id, is: 'failed', message: error instanceof Error ? error.message : String(error) })
    }
    return
  }
  const stepOf = (at: StopAt) => {
    if (command.stopAt === at) stopMyself(id)
  }
  stepOf('before')
  report({ id, is: 'calling' })
  const outcome = await runGuarded(under, command, async (at) => stepOf(at))
  report({ id, is: 'wrote', outcome })
}

/** The whole process stands still here, its timers and sockets too, until its parent sends SIGCONT. */
function stopMyself(id: number): void {
  report({ id, is: 'stopping' })
  process.kill(process.pid, 'SIGSTOP')
  report({ id, is: 'resumed' })
}

/** Written at once: a stopped process flushes nothing. */
function report(line: OwnerReport): void {
  writeSync(STANDARD_OUTPUT, `${JSON.stringify(line)}\n`)
}
