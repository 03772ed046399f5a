/**
 * Where the messages of keyed work are: subjects, streams, and the key of a subject.
 *
 *   <prefix>.<partition>.<key token>   one message, in the stream named after the prefix
 *   <prefix>.dead                      letters about messages that nobody could handle, in `<stream>_dead`
 *
 * The partition is part of the subject, so that any key may be published (core/subject-token.ts says
 * which keys the server's own mapping would agree on), and so that one filter reads one partition.
 */
import type { PartitionId } from '../core/ids.ts'
import { decodeSubjectToken, encodeSubjectToken } from '../core/subject-token.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { StreamSettings, Streams } from '../ports/streams.ts'

const PREFIX = /^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*$/

export type WorkSubjects = {
  readonly stream: string
  readonly deadStream: string
  readonly deadSubject: string
  /** Of all messages. */
  readonly all: string
  /** Of all messages of the partition. */
  partition(partition: PartitionId): string
  message(partition: PartitionId, key: string): string
}

/**
 * @param stream default: the prefix with `_` for each dot
 * @throws TenureError `invalid-argument` unless the prefix is dot-separated letters, digits, `_`, `-`
 */
export function workSubjects(prefix: string, stream?: string): WorkSubjects {
  if (!PREFIX.test(prefix)) {
    const rule = 'must be words of letters, digits, "_" or "-", separated by dots'
    throw createTenureError('invalid-argument', `subject prefix "${prefix}" ${rule}`)
  }
  const name = stream ?? prefix.replaceAll('.', '_')
  return {
    stream: name,
    deadStream: `${name}_dead`,
    deadSubject: `${prefix}.dead`,
    all: `${prefix}.*.*`,
    partition: (partition) => `${prefix}.${partition}.*`,
    message: (partition, key) => `${prefix}.${partition}.${encodeSubjectToken(key)}`,
  }
}

/** The key in the last token; that token as it stands where it encodes no key. */
export function keyOfSubject(subject: string): string {
  const token = subject.slice(subject.lastIndexOf('.') + 1)
  return decodeSubjectToken(token) ?? token
}

export type WorkStreamSettings = Omit<StreamSettings, 'name' | 'subjects'> & {
  readonly prefix: string
  /** Default: the prefix with `_` for each dot. */
  readonly stream?: string
}

/**
 * Makes the stream of the messages and the one of the dead letters, or brings their limits to these.
 * @throws TenureError as `Streams.ensureStream`
 */
export async function ensureWorkStreams(
  streams: Streams,
  settings: WorkStreamSettings,
): Promise<void> {
  const { prefix, stream, ...limits } = settings
  const subjects = workSubjects(prefix, stream)
  await streams.ensureStream({ ...limits, name: subjects.stream, subjects: [subjects.all] })
  await streams.ensureStream({
    ...limits,
    name: subjects.deadStream,
    subjects: [subjects.deadSubject],
  })
}
