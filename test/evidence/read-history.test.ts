/** Plan: grants made in a real etcd, read back as its history: whole, and with the oldest forgotten. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { historyOf } from '../../src/composition/read-history.ts'
import { elect, revoke, type StoredRecord, vacate } from '../../src/core/commit.ts'
import { groupName, type MemberName, operationId, type SessionId } from '../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys } from '../../src/core/keys.ts'
import { isTenureError } from '../../src/core/tenure-error.ts'
import { createEtcdStore } from '../../src/etcd/etcd-store.ts'
import { grantsOf, grantToken } from '../../src/evidence/history-log.ts'
import { verifyRun } from '../../src/evidence/verify.ts'
import { compact } from '../support/etcd-admin.ts'
import { startEtcd } from '../support/servers.ts'

const INCARNATION = 1_764_000_000

test('a history read from etcd, whole, proves; its beginning forgotten, is inconclusive', async (t) => {
  const etcd = await startEtcd(t)
  const store = createEtcdStore({ endpoints: [etcd.endpoint] })
  t.after(() => store.close())
  const keys = groupKeys(DEFAULT_KEY_PREFIX, groupName('orders'))
  await assert.rejects(historyOf(store, keys, 'orders'), (error) =>
    isTenureError(error, 'unknown-group'),
  )
  let operations = 0
  const put = async (key: string, value: string) => {
    const transaction = {
      compare: [],
      success: [{ type: 'put' as const, key, value }],
      failure: [],
    }
    const reply = await store.transact(transaction, { timeoutMs: 5000 })
    assert.ok(reply.ok)
    return reply.revision
  }
  const stamp = () => {
    operations += 1
    return { operation: operationId(String(operations)), atMs: 1000 + operations }
  }
  const owner = { member: 'a' as MemberName, session: '00000000000000aa' as SessionId }
  const records: StoredRecord[] = []
  const revisions: number[] = []
  const write = async ({ next, value }: { next: StoredRecord['record']; value: string }) => {
    records.push({ record: next, raw: value })
    revisions.push(await put(keys.partition(0), value))
  }
  await write(elect(0, null, owner, INCARNATION, stamp()))
  const owned = records[0] as StoredRecord & { record: { phase: 'owned' } }
  const move = { id: 'm', to: null, reason: 'operator', by: 'ann', rewrites: 0, atMs: 1 } as const
  await write(revoke(0, owned, move, owner.session, stamp()))
  await write(vacate(0, records[1] as StoredRecord, stamp()))
  await write(elect(0, records[2] as StoredRecord, owner, INCARNATION, stamp()))
  await put('/elsewhere', 'later than any record')

  const whole = await historyOf(store, keys, 'orders')
  assert.deepEqual(
    whole.events.map((event) => event.type === 'record' && event.record.phase),
    ['owned', 'revoking', 'vacant', 'owned'],
  )
  assert.equal(whole.timed, false)
  const accepts = grantsOf(whole.events).map(
    (grant) => ({ type: 'sealed', token: grantToken(grant), atMs: 1 }) as const,
  )
  assert.equal(verifyRun({ accepts, history: whole, inputs: null }).verdict, 'proved')

  await compact(etcd.endpoint, revisions[1] ?? 0)
  const late = await historyOf(store, keys, 'orders')
  assert.deepEqual(
    late.events.map((event) => event.type === 'record' && event.record.phase),
    ['revoking', 'vacant', 'owned'],
  )
  const found = verifyRun({ accepts, history: late, inputs: null })
  assert.deepEqual([found.verdict, found.violations], ['inconclusive', []])

  await compact(etcd.endpoint, revisions[3] ?? 0)
  const last = await historyOf(store, keys, 'orders')
  assert.equal(last.events.length, 1)
})
