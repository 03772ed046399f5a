/** Operators' reads and changes: what is shown, what is refused, and lost replies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { halt } from '../../src/core/commit.ts'
import { memberName, operationId } from '../../src/core/ids.ts'
import { compareVersions } from '../../src/core/map-version.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import type { Change, MapEvent } from '../../src/ports/group-access.ts'
import { createGroups } from '../../src/runtime/group-service.ts'
import type { ServeProcess } from './served-group-world.ts'
import { KEYS, ServedGroupWorld } from './served-group-world.ts'

const BY = { by: 'ann', why: 'because' }
const BALANCE = { type: 'balance' } as const

function code(change: Change<unknown>): string {
  return change.ok ? 'ok' : change.code
}

/** A serve process, and a member `a` that owns everything. */
async function served(settings = {}) {
  const world = new ServedGroupWorld(settings)
  const serve = await world.serve('serve-1')
  const { view, admin } = serve.service
  const a = await world.member('a')
  await world.until(() => view.summary().owned === 12, 'a owns all')
  return { world, serve, view, admin, a }
}

test('a partition never owned, owned, disabled and orphaned says who owns it and why nobody does', async () => {
  const world = new ServedGroupWorld()
  const { service } = await world.serve('serve-1')
  const { view, admin } = service
  assert.equal(view.partition(3).phase, 'vacant')
  assert.equal(view.partition(3).why, 'no member is live')
  const a = await world.member('a')
  await world.until(() => view.summary().owned === 12, 'a owns all')
  const owned = view.partition(3)
  assert.deepEqual(owned.owner, { member: 'a', session: a.session, address: 'a:80', live: true })
  assert.deepEqual([owned.phase, owned.generation, owned.why], ['owned', 1, null])
  await world.clock.run(admin.setDisabled(3, BY))
  assert.equal(view.partition(3).disabled, true)
  assert.match(view.partition(3).why ?? '', /disabled by ann \(because\)/)
  await world.clock.run(a.close())
  await world.until(() => view.partition(4).phase === 'vacant', 'seen as vacant')
  const orphan = view.partition(4)
  assert.equal(orphan.owner, null)
  assert.deepEqual([orphan.previous?.member, orphan.previous?.generation], ['a', 1])
  assert.equal(orphan.why, 'no member is live')
  assert.throws(
    () => view.partition(12),
    (error) => isTenureError(error, 'unknown-partition'),
  )
})

test('summary and members, of a group with a stuck move, count what is owned and what moves', async () => {
  const { world, view, a } = await served()
  a.self.isStuck = true
  await world.member('b')
  await world.until(() => view.summary().moving === 6, 'six moves pending')
  const { owned, vacant, moving, halted, members, alarms } = view.summary()
  assert.deepEqual(
    { owned, vacant, moving, halted, members, alarms },
    {
      ...{ owned: 12, vacant: 0, moving: 6, halted: 0, members: 2, alarms: [] },
    },
  )
  assert.deepEqual(
    view.members().map(({ member, owned: count }) => [member, count]),
    [
      ['a', 12],
      ['b', 0],
    ],
  )
  const moved = [...view.partitions()].find(({ move }) => move !== null)
  assert.match(moved?.why ?? '', /^draining at a since 20.*, then granted to b$/)
  assert.deepEqual(view.plan(), [])
})

test('a rebalance, asked for twice under one id, is made once; another request is a conflict', async () => {
  const { world, admin, view } = await served()
  const ask = (kind: Parameters<typeof admin.requestRebalance>[0], by = BY) =>
    world.clock.run(admin.requestRebalance(kind, by, 'r1'))
  const first = await ask(BALANCE)
  assert.equal(first.ok && first.value.created, true)
  await world.until(() => view.rebalances()[0]?.state === 'done', 'done')
  const again = await ask(BALANCE)
  assert.equal(again.ok && again.value.created, false)
  assert.equal(again.ok && again.value.record.state, 'done')
  assert.equal(code(await ask(BALANCE, { ...BY, why: 'other' })), 'conflict')
  assert.equal(code(await ask({ type: 'drain', member: memberName('a') })), 'conflict')
})

test('requests that cannot be are refused by what is wrong with them', async () => {
  const { world, admin, a } = await served()
  const ask = async (kind: Parameters<typeof admin.requestRebalance>[0], id?: string) =>
    code(await world.clock.run(admin.requestRebalance(kind, BY, id)))
  assert.equal(await ask({ type: 'move', partition: 99, to: a.member }), 'unknown-partition')
  assert.equal(await ask({ type: 'move', partition: 1, to: memberName('x') }), 'unknown-member')
  assert.equal(await ask({ type: 'drain', member: memberName('x') }), 'unknown-member')
  assert.equal(await ask(BALANCE, 'no/slash'), 'invalid-argument')
  const run = async (change: Promise<Change<unknown>>) => code(await world.clock.run(change))
  assert.equal(await run(admin.cancelRebalance('nothing')), 'unknown-rebalance')
  assert.equal(await run(admin.setCordon(memberName('x'), BY)), 'unknown-member')
  assert.equal(await run(admin.evict(memberName('x'), BY)), 'unknown-member')
  assert.equal(await run(admin.setDisabled(12, BY)), 'unknown-partition')
  assert.equal(await run(admin.setFreeze({ ...BY, untilMs: 1 })), 'invalid-argument')
  assert.equal(await run(admin.changeConfig({ partitions: 13 })), 'invalid-config')
  assert.equal(await run(admin.changeConfig({ marginMs: 5500 })), 'invalid-config')
})

test('a rebalance that is not taken up yet is cancelled at once; a finished one is a conflict', async () => {
  const { world, serve, admin, view } = await served()
  await world.clock.run(serve.rebalancer.close())
  await world.clock.run(admin.requestRebalance(BALANCE, BY, 'r1'))
  const cancelled = await world.clock.run(admin.cancelRebalance('r1'))
  assert.equal(cancelled.ok && cancelled.value.state, 'cancelled')
  assert.equal(code(await world.clock.run(admin.cancelRebalance('r1'))), 'ok')
  await world.serve('serve-2')
  await world.clock.run(admin.requestRebalance(BALANCE, BY, 'r2'))
  await world.until(() => view.rebalances()[0]?.state === 'done', 'r2 is done')
  assert.equal(code(await world.clock.run(admin.cancelRebalance('r2'))), 'conflict')
})

test('marks are set once, read at once, and cleared; the same again answers what stands', async () => {
  const { world, admin, view } = await served()
  const freeze = { ...BY, untilMs: null }
  const first = await world.clock.run(admin.setFreeze(freeze))
  assert.deepEqual(view.summary().frozen, first.ok && first.value)
  await world.clock.advance(10)
  const again = await world.clock.run(admin.setFreeze(freeze))
  assert.deepEqual(again, first)
  assert.equal(code(await world.clock.run(admin.clearFreeze())), 'ok')
  assert.equal(code(await world.clock.run(admin.clearFreeze())), 'ok')
  await world.until(() => view.summary().frozen === null, 'no longer frozen')
  await world.clock.run(admin.setCordon(memberName('a'), BY))
  assert.equal(view.members()[0]?.cordon?.by, 'ann')
})

test('a change of which the reply is lost is settled by reading back, and written once', async () => {
  const { world, serve, admin } = await served()
  await world.clock.run(serve.rebalancer.close())
  for (const fault of ['lose-reply', 'drop-request', 'not-executed', 'execute-late'] as const) {
    const revision = world.etcd.revision()
    // The first transaction of a change reads; the fault is for the one that writes.
    const calls = serve.store.calls.transact
    const change = admin.requestRebalance(BALANCE, BY, `r-${fault}`)
    assert.equal(serve.store.calls.transact, calls + 1)
    serve.store.failNext(fault, 'transact')
    const answer = await world.clock.run(change)
    assert.equal(code(answer), 'ok', fault)
    assert.equal(world.etcd.entries(KEYS.rebalance(`r-${fault}`)).length, 1)
    await world.clock.advance(5000)
    assert.equal(world.etcd.revision(), revision + 1, fault)
  }
})

test('without a store, changes are refused with a time to try again, and reads answer as stale', async () => {
  const { world, admin, view } = await served()
  assert.equal(view.freshness().stale, false)
  world.etcd.setAvailability('down')
  const refused = await world.clock.run(admin.setFreeze({ ...BY, untilMs: null }))
  assert.equal(code(refused), 'store-unreachable')
  assert.ok(!refused.ok && (refused.retryAfterMs ?? 0) > 0)
  await world.until(() => view.freshness().stale, 'stale', 10_000)
  assert.equal(view.partition(0).generation, 1)
})

test('the incarnation, raised, exceeds the time, what stands and what halted partitions report', async () => {
  const { world, admin, view, a } = await served()
  const nowSeconds = Math.floor(world.clock.wallMs() / 1000)
  const ahead = nowSeconds + 1000
  await world.until(() => a.mirror.state.record(5) !== null, 'a sees it')
  const stored = a.mirror.state.record(5)
  assert.ok(stored !== null)
  const record = { ...stored.record, incarnation: ahead }
  const owner = { member: a.member, session: a.session }
  const stamp = { operation: operationId('00000000000000aa'), atMs: 0 }
  a.committer.commit(halt(5, { ...stored, record }, owner, 'fence-ahead', stamp), () => {})
  await world.until(() => view.summary().halted === 1, 'halted')
  assert.match(view.partition(5).why ?? '', new RegExp(`halted.*above ${ahead}`))
  assert.match(view.summary().alarms[0] ?? '', /^fence-ahead: 1 partitions/)
  assert.deepEqual(await world.clock.run(admin.raiseIncarnation(BY)), {
    ok: true,
    value: ahead + 1,
  })
  assert.deepEqual(await world.clock.run(admin.raiseIncarnation(BY)), {
    ok: true,
    value: ahead + 2,
  })
  await world.until(() => view.summary().incarnation === ahead + 2, 'a new list shows it')
  assert.deepEqual(view.summary().alarms, [])
})

test('settings that may change are changed and kept; the identity of the group stays', async () => {
  const { world, admin, view } = await served()
  const changed = await world.clock.run(
    admin.changeConfig({ drain: { deadlineMs: 1234 }, partitions: 12 }),
  )
  assert.equal(changed.ok && changed.value.drain.deadlineMs, 1234)
  assert.equal(view.config().drain.deadlineMs, 1234)
  assert.equal(view.config().drain.policy, 'wait')
})

test('events have rising versions, tell all of the map, and can be resumed from each', async () => {
  const { world, view, serve } = await served()
  const start = view.freshness().version
  const before = new Map([...view.partitions()].map((p) => [p.partition, p]))
  const events: MapEvent[] = []
  view.onChange((event) => events.push(event))
  await world.member('b')
  await world.until(() => serve.mirror.state.members.size === 2, 'b is seen')
  await world.until(() => view.members()[1]?.owned === 6, 'balanced')
  await world.clock.advance(1000)
  for (let index = 1; index < events.length; index += 1) {
    const [previous, next] = [events[index - 1], events[index]]
    assert.ok(previous && next && compareVersions(next.version, previous.version) > 0)
  }
  for (const event of events) for (const p of event.partitions) before.set(p.partition, p)
  assert.deepEqual([...before.values()], [...view.partitions()])
  assert.deepEqual(view.eventsSince(start), events)
  const middle = events[2]
  assert.ok(middle !== undefined)
  assert.deepEqual(view.eventsSince(middle.version), events.slice(3))
  assert.equal(view.eventsSince({ incarnation: 1, revision: 1 }), null)
})

test('the death of a member is an event of all partitions that it owned', async () => {
  const { world, view, a } = await served()
  const seen = new Set<number>()
  view.onChange(({ partitions }) => {
    for (const { partition, phase } of partitions) if (phase === 'vacant') seen.add(partition)
  })
  await world.clock.run(a.close())
  await world.until(() => seen.size === 12, 'all told')
})

test('versions, after the store went back, do not go back, and readers are told to start anew', async () => {
  const { world, view, admin } = await served()
  const snapshot = world.etcd.snapshot()
  await world.clock.run(admin.setCordon(memberName('a'), BY))
  await world.clock.run(admin.clearCordon(memberName('a')))
  await world.clock.advance(1000)
  const before = view.freshness().version
  world.etcd.restore(snapshot)
  await world.until(() => view.eventsSince(before) === null, 'resync asked for', 60_000)
  assert.ok(compareVersions(view.freshness().version, before) >= 0)
  await world.clock.run(admin.raiseIncarnation(BY))
  await world.until(() => compareVersions(view.freshness().version, before) > 0, 'beyond')
})

test('groups are found by name, once their settings are known', async () => {
  const { serve }: { serve: ServeProcess } = await served()
  const groups = createGroups([serve.service])
  assert.deepEqual(groups.names(), ['orders'])
  assert.equal(groups.find('orders')?.view, serve.service.view)
  assert.equal(groups.find('other'), null)
})
