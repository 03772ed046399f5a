/** Plan: what breaks a promise is shown to the checker of that promise, which must say so by its name. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupName, memberName, operationId, sessionId } from '../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../../src/core/keys.ts'
import { encodeMemberRecord } from '../../src/core/member-record.ts'
import type { PartitionRecord } from '../../src/core/partition-record.ts'
import { encodePartitionRecord } from '../../src/core/partition-record.ts'
import type { Token } from '../../src/core/token.ts'
import { tokenId } from '../../src/evidence/accept-log.ts'
import { createVirtualClock } from '../../src/testing/index.ts'
import { BreachBox } from './breach.ts'
import { EtcdTruth } from './etcd-truth.ts'
import { Life } from './life.ts'
import { RecordChecker } from './record-checker.ts'
import { SessionLedger } from './session-ledger.ts'
import { WorkChecker } from './work-checker.ts'

const KEYS = groupKeys(DEFAULT_KEY_PREFIX, groupName('orders'))
const A = { member: memberName('a'), session: sessionId('000000000000000a') }
const B = { member: memberName('b'), session: sessionId('000000000000000b') }
const SERVE = sessionId('000000000000000c')
const MARGIN_MS = 1_000

class Bench {
  readonly clock = createVirtualClock()
  readonly box = new BreachBox(() => this.clock.monotonicMs())
  readonly ledger = new SessionLedger(MARGIN_MS)
  readonly truth = new EtcdTruth(KEYS)
  readonly a = new Life('a#1', this.clock.createProcess())
  readonly b = new Life('b#1', this.clock.createProcess())
  isHonest = true
  readonly work: WorkChecker
  readonly records: RecordChecker
  private operations = 0

  constructor(fenced = false) {
    const rules = { fenced, resources: 2, isHonest: () => this.isHonest }
    this.work = new WorkChecker(this.ledger, this.box, rules, () => this.clock.monotonicMs())
    this.records = new RecordChecker(this.truth, this.ledger, this.work, this.box)
    this.ledger.opened('a#1', A.session, 0, 6_000)
    this.ledger.opened('b#1', B.session, 0, 6_000)
    this.ledger.opened('serve#1', SERVE, 0, 6_000)
    this.put(KEYS.incarnation, '7')
    this.join(A)
    this.join(B)
  }

  join({ member, session }: typeof A): void {
    const value = encodeMemberRecord({
      ...{ member, session, address: '', weight: 1, capacity: null, zone: '', labels: {} },
      ...{ state: 'active', versions: [1] },
    })
    this.put(KEYS.member(member), value, session)
  }

  leave({ member }: typeof A): void {
    this.truth.take({ type: 'delete', key: KEYS.member(member), modRevision: 1 })
  }

  put(key: string, value: string, session: typeof SERVE | null = null): void {
    const entry = { key, value, createRevision: 1, modRevision: 1, session }
    this.truth.take({ type: 'put', entry })
  }

  /** Writes a record of partition 0 in the name of a process. */
  write(author: string, record: Partial<PartitionRecord>): PartitionRecord {
    this.operations += 1
    const operation = operationId(String(this.operations).padStart(16, '0'))
    const common = { incarnation: 7, previous: null, atMs: 0, unknown: null }
    const full = { ...common, ...record, operation } as PartitionRecord
    const value = encodePartitionRecord(full)
    const put = { type: 'put', key: KEYS.partition(0), value } as const
    this.ledger.sent(author, { compare: [], success: [put], failure: [] })
    this.records.changed(0, full)
    this.put(KEYS.partition(0), value)
    return full
  }

  elect(owner: typeof A, generation: number, author = 'a#1') {
    const before = this.truth.records.get(0)?.record
    const last = before === undefined || before.phase === 'vacant' ? null : before
    const previous = last && { ...last.owner, incarnation: 7, generation: last.generation }
    return this.write(author, { phase: 'owned', owner, how: 'election', generation, previous })
  }

  handOver(author: string) {
    const previous = { ...A, incarnation: 7, generation: 1 }
    const how = 'hand-over'
    return this.write(author, { phase: 'owned', owner: B, how, generation: 2, previous })
  }

  broken(): string | null {
    return this.box.first?.promise ?? null
  }
}

function token(owner: typeof A, generation: number): Token {
  const { session } = owner
  return { group: groupName('orders'), partition: 0, incarnation: 7, generation, session }
}

test('an election and work within the deadline break nothing', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  bench.work.ended(bench.work.admitted(bench.a, token(A, 1)))
  assert.equal(bench.broken(), null)
})

test('S1: a position granted again', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  bench.leave(A)
  bench.elect(B, 1, 'b#1')
  assert.equal(bench.broken(), 'S1')
})

test('S2: two sessions work under one position', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  bench.work.tokenGranted(tokenId(token(B, 1)))
  bench.work.admitted(bench.a, token(A, 1))
  bench.work.admitted(bench.b, token(B, 1))
  assert.equal(bench.broken(), 'S2')
})

test('S4: elected while the owner lives', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  bench.elect(B, 2, 'b#1')
  assert.equal(bench.broken(), 'S4')
})

test('S4: granted to the dead', () => {
  const bench = new Bench()
  bench.leave(A)
  bench.elect(A, 1)
  assert.equal(bench.broken(), 'S4')
})

test('S4: handed over by another than the owner', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  bench.handOver('b#1')
  assert.equal(bench.broken(), 'S4')
})

test('S4: forced in a group without a fence', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  const previous = { ...A, incarnation: 7, generation: 1 }
  bench.write('a#1', { phase: 'owned', owner: B, how: 'forced', generation: 2, previous })
  assert.equal(bench.broken(), 'S4')
})

test('S5: handed over while work runs', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  bench.work.admitted(bench.a, token(A, 1))
  bench.handOver('a#1')
  assert.equal(bench.broken(), 'S5')
})

test('S5: admitted after the hand-over', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  bench.handOver('a#1')
  bench.work.admitted(bench.a, token(A, 1))
  assert.equal(bench.broken(), 'S5')
})

test('S6: admitted after the deadline, which only a proof moves', async () => {
  const bench = new Bench()
  bench.elect(A, 1)
  await bench.clock.advance(4_000)
  bench.ledger.renewed(A.session, 3_000, 6_000)
  const proof = bench.ledger.sent('a#1', {
    compare: [{ type: 'lease-equals', key: KEYS.member(A.member), session: A.session }],
    success: [{ type: 'delete', key: KEYS.never }],
    failure: [],
  })
  await bench.clock.advance(900)
  bench.work.ended(bench.work.admitted(bench.a, token(A, 1)))
  assert.equal(bench.broken(), null)
  proof({ ok: true, revision: 1, value: { succeeded: true, results: [] } })
  await bench.clock.advance(3_000)
  bench.work.ended(bench.work.admitted(bench.a, token(A, 1)))
  assert.equal(bench.broken(), null)
  await bench.clock.advance(200)
  bench.work.effectBegun(bench.a, token(A, 1))
  assert.equal(bench.broken(), 'S6')
})

test('S6: admitted after its own session was closed, and under the session of another', () => {
  const closed = new Bench()
  closed.elect(A, 1)
  closed.ledger.closed(A.session)
  closed.work.admitted(closed.a, token(A, 1))
  assert.equal(closed.broken(), 'S6')
  const foreign = new Bench()
  foreign.elect(A, 1)
  foreign.work.admitted(foreign.b, token(A, 1))
  assert.equal(foreign.broken(), 'S6')
})

test('S7: admitted before all resources were sealed', () => {
  const bench = new Bench(true)
  bench.elect(A, 1)
  bench.work.tokenSealed(token(A, 1), 'one')
  bench.work.admitted(bench.a, token(A, 1))
  assert.equal(bench.broken(), 'S7')
})

test('S9: revoked by a process that is not elected', () => {
  const bench = new Bench()
  bench.elect(A, 1)
  bench.put(KEYS.rebalancer, '{}', SERVE)
  const move = { id: 'm', to: B.member, reason: 'balance', by: 'r', rewrites: 0, atMs: 0 } as const
  const revoking = { phase: 'revoking', owner: A, how: 'election', generation: 1, move } as const
  bench.write('serve#1', revoking)
  assert.equal(bench.broken(), null)
  bench.write('serve#2', { ...revoking, move: { ...move, rewrites: 1 } })
  assert.equal(bench.broken(), 'S9')
})

test('S10: an older owner works after its successor, unless etcd was dishonest', () => {
  for (const isHonest of [true, false]) {
    const bench = new Bench()
    bench.isHonest = isHonest
    bench.elect(A, 1)
    bench.leave(A)
    bench.elect(B, 2, 'b#1')
    bench.work.ended(bench.work.admitted(bench.b, token(B, 2)))
    bench.work.admitted(bench.a, token(A, 1))
    assert.equal(bench.broken(), isHonest ? 'S10' : null)
  }
})
