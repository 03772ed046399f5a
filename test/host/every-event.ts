/** One event of each type there is: a new type does not compile until it stands here. */
import { groupName, memberName, sessionId } from '../../src/core/ids.ts'
import type { TelemetryEvent } from '../../src/ports/telemetry.ts'

const group = groupName('orders')
const member = memberName('orders-2')
const session = sessionId('00000000000000a1')

/** A grant of a partition by number. */
export const grantOf = (partition: number) => ({
  ...{ group, member, partition, incarnation: 1_764_440_000, generation: 5 },
})
const grant = grantOf(17)
const { incarnation: _i, generation: _g, ...place } = grant

const EVENTS: {
  readonly [Type in TelemetryEvent['type']]: Extract<TelemetryEvent, { type: Type }>
} = {
  'session-opened': { type: 'session-opened', group, member, session, ttlMs: 6000 },
  'session-proved': { type: 'session-proved', group, member, roundTripMs: 3, leftMs: 4997 },
  'session-renewal-failed': {
    ...{ type: 'session-renewal-failed', group, member, leftMs: 2000 },
    detail: 'etcd at http://ann:hunter2@10.0.0.1:2379 timed out',
  },
  'session-suspect': { type: 'session-suspect', group, member, leftMs: 1500 },
  'session-ended': { type: 'session-ended', group, member, session, cause: 'deadline' },
  'name-in-use': { type: 'name-in-use', group, member, holder: session },
  'campaign-ended': { ...place, type: 'campaign-ended', outcome: 'won' },
  granted: { ...grant, type: 'granted', how: 'election', ownerlessMs: 6400 },
  serving: { ...grant, type: 'serving', acquireMs: 12 },
  suspected: { ...grant, type: 'suspected', why: 'higher-generation' },
  reopened: { ...grant, type: 'reopened' },
  draining: { ...grant, type: 'draining', to: null, reason: 'leave', inFlight: 3 },
  'drain-overdue': { ...grant, type: 'drain-overdue', policy: 'wait' },
  released: { ...grant, type: 'released', to: null, drainMs: 40, handOffMs: 45 },
  lost: { ...grant, type: 'lost', cause: 'deadline' },
  'acquire-failed': { ...grant, type: 'acquire-failed', detail: 'no database', retryMs: 100 },
  'run-failed': { ...grant, type: 'run-failed', detail: 'bad message', retryMs: 200 },
  'handler-failed': { ...grant, type: 'handler-failed', handler: 'release', detail: 'flush' },
  'work-refused': { ...place, type: 'work-refused', reason: 'draining' },
  'rebalancer-elected': { type: 'rebalancer-elected', group, session },
  'rebalancer-deposed': { type: 'rebalancer-deposed', group, session, cause: 'closed' },
  'plan-made': { type: 'plan-made', group, reason: 'balance', moves: 8 },
  'move-requested': {
    ...{ type: 'move-requested', group, partition: 17, from: member, to: null },
    reason: 'balance',
  },
  'move-ended': {
    ...{ type: 'move-ended', group, partition: 17, outcome: 'moved' },
    ...{ reason: 'balance', tookMs: 60 },
  },
  'rebalance-changed': { type: 'rebalance-changed', group, id: 'r1', state: 'done', note: '' },
  'eviction-marked': { type: 'eviction-marked', group, member, why: 'stuck' },
  'eviction-closed': { type: 'eviction-closed', group, member },
  'mirror-listed': { type: 'mirror-listed', group, revision: 9, keys: 70, why: 'start' },
  'mirror-broken': { type: 'mirror-broken', group, detail: 'stream ended' },
  'map-published': { type: 'map-published', group, revision: 9, entries: 2, bytes: 340 },
  'map-gap': { type: 'map-gap', group, have: 7, got: 9 },
  'map-resynced': { type: 'map-resynced', group, revision: 9, tookMs: 8 },
  'store-reachable': { type: 'store-reachable', reachable: false, detail: 'no leader' },
  'broadcast-connected': { type: 'broadcast-connected', connected: true },
  'http-request': {
    ...{ type: 'http-request', method: 'GET', route: '/v1/groups/:group/owner' },
    ...{ status: 200, tookMs: 0.2 },
  },
  alarm: { type: 'alarm', group, code: 'fence-ahead', detail: 'raise the incarnation' },
}

export const EVERY_EVENT: readonly TelemetryEvent[] = Object.values(EVENTS)
export { EVENTS as EVENT_BY_TYPE, group, member, session }
