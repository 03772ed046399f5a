/**
 * The metrics by name. Base units are seconds and bytes, counters end in `_total`. Labels are `group`,
 * closed lists of causes and outcomes, HTTP route patterns, and `member` where the number belongs to a
 * member of this very process. No label's values grow with the number of partitions.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { createHttpHistogram } from './http-histogram.ts'

/** 0.5 ms to 10 s: store and broadcast round trips. */
const ROUND_TRIP_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
]
/** 1 ms to 2 min: drains, hand-overs and time without an owner. */
const HAND_OVER_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10, 30, 120]
/** 0.1 ms to 2.5 s: answers from memory, and changes through the store. */
const HTTP_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1, 2.5]

export type Metrics = ReturnType<typeof defineMetrics>

export function defineMetrics(register: Registry) {
  const registers = [register]
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name: `tenure_${name}`, help, labelNames, registers })
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name: `tenure_${name}`, help, labelNames, registers })
  const histogram = <Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: Label[]
  ) => new Histogram({ name: `tenure_${name}_seconds`, help, buckets, labelNames, registers })

  return {
    buildInfo: gauge('build_info', 'Always 1; the labels say what runs.', 'version', 'node'),

    sessionsOpened: counter('sessions_opened_total', 'Sessions opened.', 'group', 'member'),
    sessionsLost: counter(
      'sessions_lost_total',
      'Sessions that ended otherwise than by being closed.',
      'group',
      'member',
      'cause',
    ),
    renewalsFailed: counter(
      'session_renewals_failed_total',
      'Keepalive rounds without proof.',
      'group',
      'member',
    ),
    suspects: counter('sessions_suspect_total', 'Times a session was suspect.', 'group', 'member'),
    leaseLeft: gauge(
      'lease_left_seconds',
      'Time until the session’s deadline; negative when it has passed.',
      'group',
      'member',
    ),
    keepalive: histogram(
      'keepalive_round_trip',
      'Renewal and proof of a session.',
      ROUND_TRIP_SECONDS,
      'group',
    ),
    namesInUse: counter('member_names_in_use_total', 'Sessions refused for a live name.', 'group'),

    grants: counter('grants_total', 'Grants won by this process.', 'group', 'how'),
    elections: counter('elections_total', 'Campaigns by how they ended.', 'group', 'outcome'),
    partitionsLost: counter('partitions_lost_total', 'Ended without drain.', 'group', 'cause'),
    releases: counter('releases_total', 'Partitions ended after a drain.', 'group'),
    gateSuspects: counter('partitions_suspect_total', 'Gates that became suspect.', 'group', 'why'),
    gatesReopened: counter('partitions_reopened_total', 'Suspicions settled well.', 'group'),
    acquire: histogram('acquire', 'From grant to serving.', HAND_OVER_SECONDS, 'group'),
    drain: histogram('drain', 'From revoke to the last work’s end.', HAND_OVER_SECONDS, 'group'),
    handOff: histogram('hand_off', 'From revoke to the next grant.', HAND_OVER_SECONDS, 'group'),
    ownerless: histogram(
      'ownerless',
      'From the loss of one owner to the next grant.',
      HAND_OVER_SECONDS,
      'group',
    ),
    drains: counter('drains_total', 'Drains begun.', 'group', 'reason'),
    drainsOverdue: counter('drains_overdue_total', 'Drains past deadline.', 'group', 'policy'),
    handlersFailed: counter('handler_failures_total', 'Handlers that threw.', 'group', 'handler'),
    workRefused: counter('work_refused_total', 'Work refused at a gate.', 'group', 'reason'),

    rebalancing: gauge('rebalancer', '1 while this process is the rebalancer.', 'group'),
    rebalancersDeposed: counter('rebalancers_deposed_total', 'Terms ended.', 'group', 'cause'),
    plans: counter('plans_total', 'Plans made.', 'group', 'reason'),
    movesPlanned: counter('moves_planned_total', 'Moves in these plans.', 'group', 'reason'),
    movesRequested: counter('moves_requested_total', 'Revokes written.', 'group', 'reason'),
    moves: counter('moves_total', 'Moves ended.', 'group', 'reason', 'outcome'),
    move: histogram('move', 'From revoke to the end of a move.', HAND_OVER_SECONDS, 'group'),
    rebalances: counter('rebalances_total', 'Rebalances by state reached.', 'group', 'state'),
    evictions: counter('evictions_total', 'Evictions by step.', 'group', 'step'),

    partitionsOwned: gauge('partitions_owned', 'Partitions with a live owner.', 'group'),
    partitionsVacant: gauge('partitions_vacant', 'Partitions without one.', 'group'),
    partitionsNotServing: gauge('partitions_not_serving', 'Owned, not serving yet.', 'group'),
    partitionsMoving: gauge('partitions_moving', 'Partitions with a pending move.', 'group'),
    partitionsHalted: gauge('partitions_halted', 'Partitions that nobody may run.', 'group'),
    members: gauge('members', 'Members with a session.', 'group'),
    memberOwned: gauge('member_partitions_owned', 'Held by this member.', 'group', 'member'),
    memberNotServing: gauge(
      'member_partitions_not_serving',
      'Held by this member and not serving yet.',
      'group',
      'member',
    ),
    memberWork: gauge('member_work_in_flight', 'Work admitted, not ended.', 'group', 'member'),

    mapAge: gauge('map_age_seconds', 'Since the map was last known to be current.', 'group'),
    mapStale: gauge('map_stale', '1 while the map is older than a session’s TTL.', 'group'),
    mapRevision: gauge('map_revision', 'Revision of the map.', 'group'),
    mapIncarnation: gauge('map_incarnation', 'Incarnation of the map.', 'group'),
    mapGaps: counter('map_gaps_total', 'Gaps seen by followers of the broadcast.', 'group'),
    mapResyncs: counter('map_resyncs_total', 'Resyncs after a gap or a doubt.', 'group'),
    mapResync: histogram('map_resync', 'Duration of a resync.', ROUND_TRIP_SECONDS, 'group'),
    mapPublished: counter('map_published_total', 'Deltas published.', 'group'),
    mapBytes: counter('map_published_bytes_total', 'Bytes of these.', 'group'),
    mirrorLists: counter('mirror_lists_total', 'Full readings of the store.', 'group'),
    mirrorBreaks: counter('mirror_breaks_total', 'Watches that broke.', 'group'),

    storeReachable: gauge('store_reachable', '1 while the store answers with a quorum.'),
    broadcastConnected: gauge('broadcast_connected', '1 while the broadcast is connected.'),
    http: createHttpHistogram(
      'tenure_http_request_duration_seconds',
      'Requests by route pattern.',
      HTTP_SECONDS,
    ),
    alarms: counter('alarms_total', 'Alarms raised.', 'group', 'code'),
  }
}
