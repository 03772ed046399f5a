/** Mutants of the pure machines, for the exhaustive search. */
import type { Edit, Mutant } from './mutant.ts'

const REVOKE_WITHOUT_ELECTION: Edit = {
  file: 'src/core/commit.ts',
  find: `    move,
  }
  return commit(partition, stored.raw, [{ type: 'rebalancer', session: rebalancer }], next)`,
  replace: `    move,
  }
  void rebalancer
  return commit(partition, stored.raw, [], next)`,
}

export const MUTANTS_OF_CORE: readonly Mutant[] = [
  {
    name: 'no-fence',
    what: 'a resource takes every effect',
    caughtBy: 'model',
    promises: ['S3', 'S7'],
    edits: [
      {
        file: 'src/core/fence.ts',
        find: "return order === 0 && token.session === highest.session ? 'accept' : 'stale'",
        replace: "return 'accept'",
      },
    ],
  },
  {
    name: 'high-water-lowered',
    what: 'a seal of an older token lowers what the resource remembers',
    caughtBy: 'model',
    promises: ['S3', 'S7'],
    edits: [
      {
        file: 'src/core/fence.ts',
        find: "if (order > 0) return 'raise'",
        replace: "if (order !== 0) return 'raise'",
      },
    ],
  },
  {
    name: 'equal-token-of-another-session',
    what: 'at an equal position a resource takes the seals and effects of any session',
    caughtBy: 'model',
    promises: ['S2', 'S3'],
    edits: [
      {
        file: 'src/core/fence.ts',
        find: "return order === 0 && token.session === highest.session ? 'keep' : 'refuse'",
        replace: "return order === 0 ? 'keep' : 'refuse'",
      },
      {
        file: 'src/core/fence.ts',
        find: "return order === 0 && token.session === highest.session ? 'accept' : 'stale'",
        replace: "return order === 0 ? 'accept' : 'stale'",
      },
    ],
  },
  {
    name: 'owner-not-required-gone',
    what: "an election does not require that the last owner's session is gone",
    caughtBy: 'model',
    promises: ['S4'],
    edits: [
      {
        file: 'src/core/commit.ts',
        find: "const gone: Requirement[] = last === null ? [] : [{ type: 'session-gone', ...last }]",
        replace: 'const gone: Requirement[] = last === null ? [] : []',
      },
    ],
  },
  {
    name: 'owner-not-compared',
    what: 'the same, where no invariant looks at what a commit requires: only its landing shows',
    caughtBy: 'model',
    promises: ['S4'],
    edits: [
      {
        file: 'src/core/commit.ts',
        find: "const gone: Requirement[] = last === null ? [] : [{ type: 'session-gone', ...last }]",
        replace: 'const gone: Requirement[] = last === null ? [] : []',
      },
      {
        file: 'src/core/record-invariants.ts',
        find: "next.how !== 'election' ||",
        replace: 'true ||',
      },
    ],
  },
  {
    name: 'grantee-not-required-alive',
    what: 'a grant does not require that its grantee lives',
    caughtBy: 'model',
    promises: ['S4'],
    edits: [
      {
        file: 'src/core/commit.ts',
        find: "{ type: 'session-alive', member: owner.member, session: owner.session },",
        replace: '',
      },
    ],
  },
  {
    name: 'same-generation',
    what: 'a grant writes the generation of the one before',
    caughtBy: 'model',
    promises: ['S1', 'S2'],
    edits: [
      {
        file: 'src/core/commit.ts',
        find: 'generation: (record?.generation ?? 0) + 1,',
        replace: 'generation: record?.generation ?? 1,',
      },
    ],
  },
  {
    name: 'no-drain',
    what: 'a revoked owner hands over at once, whatever is in flight',
    caughtBy: 'model',
    promises: ['S5'],
    edits: [
      {
        file: 'src/core/ownership-transitions.ts',
        find: "return to(seat, next, [{ type: 'drain', giveUp }])",
        replace: `void next
  const step = sendHandOver(seat, { grant, stored, giveUp }, 'drained', 0, context, nowMs)
  return { ...step, actions: [{ type: 'drain', giveUp }, ...step.actions] }`,
      },
    ],
  },
  {
    name: 'reacquired-after-given-up',
    what: 'a grant at the highest position remembered is acquired again',
    caughtBy: 'model',
    promises: ['S5'],
    edits: [
      {
        file: 'src/core/ownership-transitions.ts',
        find: 'if (comparePositions(record, seat.highest) > 0) return adopt(',
        replace: 'if (comparePositions(record, seat.highest) >= 0) return adopt(',
      },
    ],
  },
  {
    name: 'revoke-without-election',
    what: 'a revoke does not require the election of its rebalancer',
    caughtBy: 'model',
    promises: ['S9'],
    edits: [REVOKE_WITHOUT_ELECTION],
  },
  {
    name: 'stale-rebalancer',
    what: 'the same, where no invariant looks at what a commit requires: only its landing shows',
    caughtBy: 'model',
    promises: ['S9'],
    edits: [
      REVOKE_WITHOUT_ELECTION,
      {
        file: 'src/core/record-invariants.ts',
        find: "by === 'member' ? next.phase !== 'revoking' : has(requires, 'rebalancer')\n",
        replace: "by === 'member' ? next.phase !== 'revoking' : true\n",
      },
    ],
  },
  {
    name: 'evict-without-wait',
    what: 'the lease of a marked member is closed at once',
    caughtBy: 'model',
    promises: ['S6', 'S10'],
    edits: [
      {
        file: 'src/core/rebalancer-evictions.ts',
        find: 'const closeAtMs = known.sinceMs + waitMs',
        replace: 'const closeAtMs = known.sinceMs + 0 * waitMs',
      },
    ],
  },
  {
    name: 'closed-before-its-deadline-ends',
    what: 'a session asks for its lease to be closed and goes on as live (V10)',
    caughtBy: 'model',
    promises: ['S4', 'S5', 'S6', 'S10'],
    edits: [
      {
        file: 'src/core/session.ts',
        find: "if (event.type === 'close') return end(state, { cause: event.cause })",
        replace: `if (event.type === 'close' && state.status === 'live') {
    return { ...stay(state), actions: [{ type: 'close-lease', session: state.session }] }
  }`,
      },
    ],
  },
  {
    name: 'no-deadline-at-the-owner',
    what: 'in a fenced group only the rebalancer acts on an overdue drain (V11)',
    caughtBy: 'model',
    promises: ['L3', 'L6', 'stuck'],
    edits: [
      {
        file: 'src/core/ownership-draining.ts',
        find: "case 'fence': {",
        replace: `case 'fence': {
      if (now.overdueAtMs !== null) return to(seat, { ...now, overdueAtMs: null }, [alarm])`,
      },
    ],
  },
  {
    name: 'lost-answer-counts-as-no',
    what: 'a hand-over of unknown outcome is taken for one that was refused by nobody',
    caughtBy: 'model',
    promises: ['S5', 'L3', 'L4', 'stuck', 'seat-I7'],
    edits: [
      {
        file: 'src/core/ownership-hand-over.ts',
        find: 'return event.operation === commit.next.operation ? ask(seat, context) : stay(seat)',
        replace: `return event.operation === commit.next.operation
        ? to(seat, { status: 'absent' }, release(now, null, nowMs))
        : stay(seat)`,
      },
    ],
  },
  {
    name: 'cancel-granted-by-the-rebalancer',
    what: 'a move back to its owner is granted by the rebalancer, while the owner drains',
    caughtBy: 'model',
    promises: ['S4', 'S5'],
    edits: [
      {
        file: 'src/core/commit.ts',
        find: `  const { record } = stored
  const move = { ...record.move, to,`,
        replace: `  const { record } = stored
  if (to === record.owner.member) {
    const by: Requirement = { type: 'rebalancer', session: rebalancer }
    return force(partition, stored, record.owner, record.incarnation, by, stamp)
  }
  const move = { ...record.move, to,`,
      },
    ],
  },
]
