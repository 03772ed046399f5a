/** A sound run in few lines, for tests to plant one violation in. */
import type { MemberName, OperationId, SessionId } from '../../src/core/ids.ts'
import type { GrantKind, Owner, PartitionRecord } from '../../src/core/partition-record.ts'
import type { EffectLine, EvidenceToken, SealedLine } from '../../src/evidence/accept-log.ts'
import type { HistoryEvent } from '../../src/evidence/history-log.ts'
import type { RunEvidence } from '../../src/evidence/verify.ts'

export const INCARNATION = 1_764_000_000

type RecordEvent = HistoryEvent & { readonly type: 'record' }

export function owner(member: string): Owner {
  const session = `${member}-session`.padEnd(16, '0') as SessionId
  return { member: member as MemberName, session }
}

let operations = 0

/** A grant at the generation; the one before it was `previous`'s. */
export function grant(
  generation: number,
  to: string,
  options: {
    readonly atMs: number
    readonly revision: number
    readonly how?: GrantKind
    readonly previous?: { readonly member: string; readonly generation: number } | null
    readonly session?: string
    readonly partition?: number
  },
): RecordEvent {
  const { atMs, revision, how = 'election', previous = null, partition = 0 } = options
  operations += 1
  const named = owner(to)
  const record: PartitionRecord = {
    phase: 'owned',
    incarnation: INCARNATION,
    generation,
    owner: { ...named, session: (options.session ?? named.session) as SessionId },
    how,
    operation: `operation-${operations}` as OperationId,
    previous:
      previous === null
        ? null
        : {
            ...owner(previous.member),
            incarnation: INCARNATION,
            generation: previous.generation,
          },
    atMs,
    unknown: null,
  }
  return { type: 'record', atMs, revision, partition, record }
}

/** The move of the record's owner begins. */
export function revoked(of: RecordEvent, atMs: number, revision: number, to: string): RecordEvent {
  if (of.record.phase !== 'owned') throw new Error('only what is owned is revoked')
  operations += 1
  const move = { id: 'm', to: to as MemberName, reason: 'operator', by: 'ann', rewrites: 0, atMs }
  const record = {
    ...of.record,
    phase: 'revoking',
    move,
    operation: `operation-${operations}` as OperationId,
  } as PartitionRecord
  return { ...of, atMs, revision, record }
}

export function token(generation: number, member: string, session?: string): EvidenceToken {
  const named = session ?? owner(member).session
  return { partition: 0, incarnation: INCARNATION, generation, session: named }
}

export function sealed(of: EvidenceToken, atMs: number): SealedLine {
  return { type: 'sealed', token: of, atMs }
}

export function effect(
  of: EvidenceToken,
  input: string | null,
  beginMs: number,
  endMs: number,
  outcome: EffectLine['outcome'] = 'applied',
): EffectLine {
  return { type: 'effect', token: of, input, beginMs, endMs, outcome }
}

/**
 * a is elected at 100 and applies two inputs; it is revoked at 195, drains, hands over at 210 to b, which
 * applies two more and is killed; a is elected again at 900 and refuses nobody.
 */
export function soundRun() {
  const first = grant(1, 'a', { atMs: 100, revision: 12 })
  const second = grant(2, 'b', {
    ...{ atMs: 210, revision: 14, how: 'hand-over' },
    previous: { member: 'a', generation: 1 },
  })
  const third = grant(3, 'a', {
    ...{ atMs: 900, revision: 17 },
    previous: { member: 'b', generation: 2 },
  })
  const history: HistoryEvent[] = [
    { type: 'session-began', atMs: 90, revision: 10, ...owner('a') },
    { type: 'session-began', atMs: 91, revision: 11, ...owner('b') },
    first,
    revoked(first, 195, 13, 'b'),
    second,
    { type: 'session-gone', atMs: 800, revision: 16, member: 'b' },
    third,
  ]
  const accepts = [
    sealed(token(1, 'a'), 110),
    effect(token(1, 'a'), 'i-1', 120, 140),
    effect(token(1, 'a'), 'i-2', 190, 205),
    sealed(token(2, 'b'), 215),
    effect(token(2, 'b'), 'i-3', 220, 240),
    effect(token(2, 'b'), 'i-4', 300, 320),
    sealed(token(3, 'a'), 910),
    effect(token(2, 'b'), 'i-5', 905, 915, 'refused'),
    effect(token(3, 'a'), 'i-5', 912, 930),
  ]
  return { history, accepts, inputs: ['i-1', 'i-2', 'i-3', 'i-4', 'i-5'] }
}

export type Run = ReturnType<typeof soundRun>

export function evidenceOf(
  { history, accepts, inputs }: Run,
  missing: readonly string[] = [],
): RunEvidence {
  return { accepts, inputs, history: { events: history, missing, timed: true } }
}
