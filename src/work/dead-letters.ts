/**
 * A letter about a message that could not be handled: what it was, why, how often it was tried, and under
 * which token. It goes to `<prefix>.dead`, with an id made of the message's, so that a second owner that
 * buries the same message leaves one letter (within the stream's duplicate window).
 *
 * The dead stream is no fenced resource: a letter from an owner that was already replaced is possible,
 * and its token shows it.
 */
import { createTenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import type { StreamMessage, Streams } from '../ports/streams.ts'
import { keyOfSubject, type WorkSubjects } from './subjects.ts'

export type DeadLetter = {
  readonly v: 1
  readonly stream: string
  readonly subject: string
  readonly key: string
  readonly sequence: number
  readonly messageId: string
  /** Base64. */
  readonly data: string
  /** What the last attempt failed with. */
  readonly reason: string
  readonly failures: number
  readonly token: Token
}

const PUBLISH_TRIES = 3

export function deadLetter(
  stream: string,
  message: StreamMessage,
  failure: { readonly failures: number; readonly error: unknown; readonly token: Token },
): DeadLetter {
  const { subject, sequence, messageId, data } = message
  const { failures, error, token } = failure
  return {
    v: 1,
    ...{ stream, subject, key: keyOfSubject(subject), sequence, messageId },
    data: Buffer.from(data).toString('base64'),
    reason: error instanceof Error ? error.message : String(error),
    ...{ failures, token },
  }
}

/** @throws TenureError `conflict` when it cannot be stored: the message must not be passed over then. */
export async function publishLetter(
  streams: Streams,
  subjects: WorkSubjects,
  letter: DeadLetter,
): Promise<void> {
  const data = new TextEncoder().encode(JSON.stringify(letter))
  const messageId = `${letter.stream}/${letter.sequence}`
  let detail = ''
  for (let tries = 0; tries < PUBLISH_TRIES; tries += 1) {
    const outcome = await streams.publish(subjects.deadSubject, data, { messageId })
    if (outcome.ok) return
    detail = outcome.detail
  }
  throw createTenureError(
    'conflict',
    `no dead letter could be stored on ${subjects.deadSubject} (${detail}): make the stream with ensureWorkStreams`,
    { details: { subject: subjects.deadSubject, sequence: letter.sequence } },
  )
}

/** @throws TenureError `record-malformed` for anything but a letter. */
export function readDeadLetter(data: Uint8Array): DeadLetter {
  const letter: unknown = JSON.parse(new TextDecoder().decode(data))
  if (typeof letter === 'object' && letter !== null && 'v' in letter && letter.v === 1) {
    return letter as DeadLetter
  }
  throw createTenureError('record-malformed', 'this is no dead letter that this version knows')
}
