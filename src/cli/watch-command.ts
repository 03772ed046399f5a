/**
 * `tenure watch`: follows the map's changes until Ctrl-C, or until `--count` events came.
 *
 *   connecting ──▶ following ──broken──▶ waiting ──▶ connecting (with the last id)
 *       └── the first connection fails: the command does
 *
 * After a break it goes on from the version it saw last; when the server no longer keeps that, it says
 * `reset`: what happened in between is not shown, so read the partitions again. A stream that is silent
 * for longer than three heartbeats counts as broken.
 */
import type { PartitionView } from '../ports/group-access.ts'
import { pause } from '../runtime/waiting.ts'
import { CliError, interruptedError } from './cli-error.ts'
import { createEventReader, type ServerEvent } from './event-stream-reader.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { phaseColour } from './group-text.ts'
import { groupPath, type OperatorCall, theGroup } from './operator-call.ts'

const SILENCE_MS = 45_000
const RECONNECT_MS = 1000

type Following = { lastId: string; left: number }

export async function watchGroup(call: OperatorCall): Promise<ExitCode> {
  const { context, output, options } = call
  const path = groupPath(await theGroup(call), 'events')
  const following: Following = {
    lastId: String(options['after'] ?? ''),
    left: Number(options['count'] ?? Number.POSITIVE_INFINITY),
  }
  let connected = false
  for (;;) {
    let broken = 'the stream ended'
    try {
      await follow(call, path, following, () => {
        connected = true
      })
      if (following.left <= 0) return EXIT.ok
    } catch (error) {
      if (!connected || !isPassing(error)) throw error
      broken = error.message
    }
    if (context.interrupted.aborted) throw interruptedError()
    output.note(`${broken}; connecting again`)
    await pause(context.clock, RECONNECT_MS, context.interrupted)
  }
}

function isPassing(error: unknown): error is CliError {
  return error instanceof CliError && error.exitCode === EXIT.unreachable
}

/** One connection, until it ends, falls silent or enough events came. */
async function follow(
  call: OperatorCall,
  path: string,
  following: Following,
  onOpen: () => void,
): Promise<void> {
  const { clock, interrupted } = call.context
  const ended = new AbortController()
  let timer = clock.schedule(SILENCE_MS, () => ended.abort())
  try {
    const headers: Record<string, string> =
      following.lastId === '' ? {} : { 'last-event-id': following.lastId }
    const response = await call.api.open(path, headers, ended.signal)
    onOpen()
    const reader = createEventReader()
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) {
      timer.cancel()
      timer = clock.schedule(SILENCE_MS, () => ended.abort())
      for (const event of reader.push(decoder.decode(bytes, { stream: true }))) {
        showEvent(call, event)
        if (event.id !== '') following.lastId = event.id
        following.left -= event.event === 'map' ? 1 : 0
        if (following.left <= 0) return
      }
    }
  } catch (error) {
    if (interrupted.aborted) throw interruptedError()
    if (error instanceof CliError) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw new CliError('unreachable', EXIT.unreachable, `the stream broke (${message})`)
  } finally {
    timer.cancel()
    ended.abort()
  }
}

function showEvent(call: OperatorCall, event: ServerEvent): void {
  const { output } = call
  const data = JSON.parse(event.data) as {
    readonly version: string
    readonly partitions?: readonly PartitionView[]
  }
  if (event.event !== 'map') {
    if (output.json) output.line({ event: event.event, ...data }, () => '')
    else if (event.event === 'start') output.note(`following from version ${data.version}`)
    else output.note(`${event.event} at version ${data.version}: changes before it are not shown`)
    return
  }
  if (output.json) {
    output.line({ event: 'map', ...data }, () => '')
    return
  }
  for (const partition of data.partitions ?? []) {
    output.line(partition, () => `${data.version}  ${describeChange(call, partition)}`)
  }
}

function describeChange(call: OperatorCall, view: PartitionView): string {
  const { partition, phase, owner, generation, move, previous, how, why } = view
  const who = owner === null ? 'nobody' : owner.member
  const words = [
    String(partition).padStart(6),
    phaseColour(phase, call.output.colors)(phase.padEnd(8)),
    `${who} generation ${generation}`,
  ]
  if (phase === 'owned' && how !== null) words.push(`by ${how}`)
  if (phase === 'owned' && previous !== null) words.push(`from ${previous.member}`)
  if (move !== null) words.push(`moves to ${move.to ?? 'nobody'} (${move.reason})`)
  return [...words, ...(why === null ? [] : [`(${why})`])].join('  ')
}
