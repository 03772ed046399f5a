/**
 * Mutants of what stands around the machines (transactions, sessions, gates, the rebalancer's driver), for
 * the simulation, which runs all of it. No invariant of the machines sees most of them.
 */
import type { Mutant } from './mutant.ts'

const BATCH = 'src/core/commit-batch.ts'
const ALWAYS = "return { type: 'absent', key: keys.never }"

export const MUTANTS_OF_RUNTIME: readonly Mutant[] = [
  {
    name: 'no-compare-and-set',
    what: 'a commit replaces whatever record stands there',
    caughtBy: 'simulation',
    promises: ['S1', 'S2', 'S4', 'S9'],
    edits: [
      {
        file: BATCH,
        find: 'compare: [record, ...own.map(',
        replace: 'compare: [...(record === null ? [] : []), ...own.map(',
      },
    ],
  },
  {
    name: 'grantee-session-not-compared',
    what: "the transaction of a grant does not compare the grantee's session",
    caughtBy: 'simulation',
    promises: ['S4'],
    edits: [
      {
        file: BATCH,
        find: "return { type: 'lease-equals', key: keys.member(member), session }",
        replace: `void [member, session]
      ${ALWAYS}`,
      },
    ],
  },
  {
    name: 'election-not-compared',
    what: 'a deposed rebalancer still changes records',
    caughtBy: 'simulation',
    promises: ['S9'],
    edits: [
      {
        file: BATCH,
        find: `        type: 'lease-equals',
        key: keys.rebalancer,
        session: requirement.session,`,
        replace: `        type: 'absent',
        key: keys.never,`,
      },
    ],
  },
  {
    name: 'incarnation-not-compared',
    what: 'a grant lands although the incarnation has risen (W1)',
    caughtBy: 'simulation',
    promises: ['S1', 'S4'],
    edits: [
      {
        file: BATCH,
        find: `        type: 'value-equals',
        key: keys.incarnation,
        value: String(requirement.incarnation),`,
        replace: `        type: 'absent',
        key: keys.never,`,
      },
    ],
  },
  {
    name: 'work-not-awaited',
    what: 'a drain does not wait for the work in flight',
    caughtBy: 'simulation',
    promises: ['S5'],
    edits: [
      {
        file: 'src/runtime/partition-run.ts',
        find: `    await running
    await this.gate.idle()`,
        replace: '    void running',
      },
    ],
  },
  {
    name: 'grant-by-timer',
    what: 'past the drain deadline the rebalancer grants, in a group without a fence too',
    caughtBy: 'simulation',
    promises: ['S4', 'S5', 'S10'],
    edits: [
      {
        file: 'src/core/rebalancer-moves.ts',
        find: `      case 'wait':
        break`,
        replace: `      case 'wait':
        forceMove(draft, partition, move)
        break`,
      },
      {
        file: 'src/core/rebalancer-moves.ts',
        find: 'if (!draft.config.fenced || stored === null || incarnation === null) return',
        replace: 'if (stored === null || incarnation === null) return',
      },
    ],
  },
  {
    name: 'deadline-from-receive-time',
    what: 'a proof moves the deadline to its arrival + T - margin',
    caughtBy: 'simulation',
    promises: ['S6', 'L7'],
    edits: [
      {
        file: 'src/core/session.ts',
        find: `  const { sentAtMs, ttlMs } = state
  // The TTL may`,
        replace: `  const { ttlMs } = state
  const sentAtMs = nowMs
  // The TTL may`,
      },
    ],
  },
  {
    name: 'renewal-counts-as-proof',
    what: 'an acknowledged keepalive moves the deadline by itself',
    caughtBy: 'simulation',
    promises: ['S6'],
    edits: [
      {
        file: 'src/core/session.ts',
        find: "const next: Live = { ...state, round: 'proving', ttlMs: event.ttlMs }",
        replace: `const untilMs = event.sentAtMs + event.ttlMs - settings.marginMs
      const deadlineMs = Math.max(state.deadlineMs, untilMs)
      const next: Live = {
        ...state,
        round: 'proving',
        ttlMs: event.ttlMs,
        deadlineMs,
        suspectAtMs: suspectAt(event.sentAtMs, event.ttlMs, deadlineMs),
      }`,
      },
    ],
  },
  {
    name: 'gate-on-the-newest-session',
    what: "a gate asks the process's newest session for its deadline, and outlives its own",
    caughtBy: 'simulation',
    promises: ['S6', 'S10'],
    edits: [
      {
        file: 'src/runtime/gate.ts',
        find: '  private readonly session: SessionDriver\n',
        replace: `  private get session(): SessionDriver {
    return NEWEST.get(this.clock) as SessionDriver
  }
`,
      },
      {
        file: 'src/runtime/gate.ts',
        find: '    this.session = session\n    this.clock = clock\n',
        replace: '    this.clock = clock\n    NEWEST.set(clock, session)\n',
      },
      {
        file: 'src/runtime/gate.ts',
        find: 'export class Gate {\n',
        replace: 'const NEWEST = new WeakMap<Clock, SessionDriver>()\n\nexport class Gate {\n',
      },
      {
        file: 'src/runtime/member.ts',
        find: "else this.step(partition, { type: 'session-ended' })",
        replace: 'else continue',
      },
    ],
  },
  {
    name: 'no-seal',
    what: "the worker's acquire seals nothing",
    caughtBy: 'simulation',
    promises: ['S7'],
    edits: [
      {
        file: 'test/sim/member-process.ts',
        find: 'for (const resource of resources) {\n      await life.sleep(this.travelMs())',
        replace:
          'for (const resource of resources.slice(0, 0)) {\n      await life.sleep(this.travelMs())',
      },
    ],
  },
  {
    name: 'second-seal-lazy',
    what: "the worker's acquire seals the first resource only",
    caughtBy: 'simulation',
    promises: ['S7'],
    edits: [
      {
        file: 'test/sim/member-process.ts',
        find: 'for (const resource of resources) {\n      await life.sleep(this.travelMs())',
        replace:
          'for (const resource of resources.slice(0, 1)) {\n      await life.sleep(this.travelMs())',
      },
    ],
  },
]
