/** What each event means for the metrics: one recorder per event type, by subject. */
import type { AlarmCode, SessionEndCause, TelemetryEvent } from '../ports/telemetry.ts'
import type { Metrics } from './metric-definitions.ts'

type EventOf<Type extends TelemetryEvent['type']> = Extract<TelemetryEvent, { type: Type }>
export type Recorders = {
  readonly [Type in TelemetryEvent['type']]: (event: EventOf<Type>) => void
}
type Some<Type extends TelemetryEvent['type']> = Pick<Recorders, Type>

/** A series that first appears with its first failure hides that failure from rates. */
const LOSSES: readonly SessionEndCause[] = [
  ...(['deadline', 'session-gone', 'evicted', 'drain-overdue', 'invariant-broken'] as const),
]
const ALARMS: readonly AlarmCode[] = [
  ...(['fence-ahead', 'store-rewound', 'drain-overdue', 'acquire-overdue'] as const),
  ...([
    'mass-expiry',
    'store-version',
    'store-alarm',
    'moves-starved',
    'invariant-broken',
  ] as const),
]

const seconds = (milliseconds: number) => milliseconds / 1000

/** `keepDeadline`: time left of a member's session as of now; null: it has none. */
export function createRecorders(
  metrics: Metrics,
  keepDeadline: (group: string, member: string, leftMs: number | null) => void,
): Recorders {
  return {
    ...sessionRecorders(metrics, keepDeadline),
    ...grantRecorders(metrics),
    ...gateRecorders(metrics),
    ...rebalancerRecorders(metrics),
    ...mapRecorders(metrics),
    ...processRecorders(metrics),
  }
}

function sessionRecorders(
  metrics: Metrics,
  keepDeadline: (group: string, member: string, leftMs: number | null) => void,
): Some<
  | 'session-opened'
  | 'session-proved'
  | 'session-renewal-failed'
  | 'session-suspect'
  | 'session-ended'
  | 'name-in-use'
> {
  return {
    'session-opened': ({ group, member }) => {
      metrics.sessionsOpened.inc({ group, member })
      for (const cause of LOSSES) metrics.sessionsLost.inc({ group, member, cause }, 0)
      for (const code of ALARMS) metrics.alarms.inc({ group, code }, 0)
    },
    'session-proved': ({ group, member, roundTripMs, leftMs }) => {
      metrics.keepalive.observe({ group }, seconds(roundTripMs))
      keepDeadline(group, member, leftMs)
    },
    'session-renewal-failed': ({ group, member }) => metrics.renewalsFailed.inc({ group, member }),
    'session-suspect': ({ group, member }) => metrics.suspects.inc({ group, member }),
    'session-ended': ({ group, member, cause }) => {
      keepDeadline(group, member, null)
      if (cause !== 'closed') metrics.sessionsLost.inc({ group, member, cause })
    },
    'name-in-use': ({ group }) => metrics.namesInUse.inc({ group }),
  }
}

function grantRecorders(
  metrics: Metrics,
): Some<'campaign-ended' | 'granted' | 'serving' | 'draining' | 'drain-overdue' | 'released'> {
  return {
    'campaign-ended': ({ group, outcome }) => metrics.elections.inc({ group, outcome }),
    granted: ({ group, how, ownerlessMs }) => {
      metrics.grants.inc({ group, how })
      if (ownerlessMs !== null) metrics.ownerless.observe({ group }, seconds(ownerlessMs))
    },
    serving: ({ group, acquireMs }) => metrics.acquire.observe({ group }, seconds(acquireMs)),
    draining: ({ group, reason }) => metrics.drains.inc({ group, reason }),
    'drain-overdue': ({ group, policy }) => metrics.drainsOverdue.inc({ group, policy }),
    released: ({ group, drainMs, handOffMs }) => {
      metrics.releases.inc({ group })
      metrics.drain.observe({ group }, seconds(drainMs))
      metrics.handOff.observe({ group }, seconds(handOffMs))
    },
  }
}

function gateRecorders(
  metrics: Metrics,
): Some<
  | 'suspected'
  | 'reopened'
  | 'lost'
  | 'acquire-failed'
  | 'run-failed'
  | 'handler-failed'
  | 'work-refused'
> {
  return {
    suspected: ({ group, why }) => metrics.gateSuspects.inc({ group, why }),
    reopened: ({ group }) => metrics.gatesReopened.inc({ group }),
    lost: ({ group, cause }) => metrics.partitionsLost.inc({ group, cause }),
    'acquire-failed': ({ group }) => metrics.handlersFailed.inc({ group, handler: 'acquire' }),
    'run-failed': ({ group }) => metrics.handlersFailed.inc({ group, handler: 'run' }),
    'handler-failed': ({ group, handler }) => metrics.handlersFailed.inc({ group, handler }),
    'work-refused': ({ group, reason }) => metrics.workRefused.inc({ group, reason }),
  }
}

function rebalancerRecorders(
  metrics: Metrics,
): Some<
  | 'rebalancer-elected'
  | 'rebalancer-deposed'
  | 'plan-made'
  | 'move-requested'
  | 'move-ended'
  | 'rebalance-changed'
  | 'eviction-marked'
  | 'eviction-closed'
> {
  return {
    'rebalancer-elected': ({ group }) => metrics.rebalancing.set({ group }, 1),
    'rebalancer-deposed': ({ group, cause }) => {
      metrics.rebalancing.set({ group }, 0)
      metrics.rebalancersDeposed.inc({ group, cause })
    },
    'plan-made': ({ group, reason, moves }) => {
      metrics.plans.inc({ group, reason })
      metrics.movesPlanned.inc({ group, reason }, moves)
    },
    'move-requested': ({ group, reason }) => metrics.movesRequested.inc({ group, reason }),
    'move-ended': ({ group, reason, outcome, tookMs }) => {
      metrics.moves.inc({ group, reason, outcome })
      metrics.move.observe({ group }, seconds(tookMs))
    },
    'rebalance-changed': ({ group, state }) => metrics.rebalances.inc({ group, state }),
    'eviction-marked': ({ group }) => metrics.evictions.inc({ group, step: 'marked' }),
    'eviction-closed': ({ group }) => metrics.evictions.inc({ group, step: 'closed' }),
  }
}

function mapRecorders(
  metrics: Metrics,
): Some<'mirror-listed' | 'mirror-broken' | 'map-published' | 'map-gap' | 'map-resynced'> {
  return {
    'mirror-listed': ({ group }) => metrics.mirrorLists.inc({ group }),
    'mirror-broken': ({ group }) => metrics.mirrorBreaks.inc({ group }),
    'map-published': ({ group, bytes }) => {
      metrics.mapPublished.inc({ group })
      metrics.mapBytes.inc({ group }, bytes)
    },
    'map-gap': ({ group }) => metrics.mapGaps.inc({ group }),
    'map-resynced': ({ group, tookMs }) => {
      metrics.mapResyncs.inc({ group })
      metrics.mapResync.observe({ group }, seconds(tookMs))
    },
  }
}

function processRecorders(
  metrics: Metrics,
): Some<'store-reachable' | 'broadcast-connected' | 'http-request' | 'alarm'> {
  return {
    'store-reachable': ({ reachable }) => metrics.storeReachable.set(reachable ? 1 : 0),
    'broadcast-connected': ({ connected }) => metrics.broadcastConnected.set(connected ? 1 : 0),
    'http-request': ({ method, route, status, tookMs }) =>
      metrics.http.observe(method, route, status, seconds(tookMs)),
    alarm: ({ group, code }) => metrics.alarms.inc({ group, code }),
  }
}
