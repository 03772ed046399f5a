/**
 * Telemetry as log lines: one structured line per event, with the event's own fields flat beside
 * `event`, its type. The level follows from the event alone. Refused work, which a busy caller can
 * cause a thousand times a second, is a line at most once a second per group and reason; the next one
 * says how many were left out.
 */
import type pino from 'pino'
import type { AlarmCode, SessionEndCause, Telemetry, TelemetryEvent } from '../ports/telemetry.ts'

type Level = 'error' | 'warn' | 'info' | 'debug'
type Type = TelemetryEvent['type']

const REFUSALS_EVERY_MS = 1000

/** By type, where the type alone decides. */
const LEVELS: Readonly<Record<Type, Level>> = {
  'session-opened': 'info',
  'session-proved': 'debug',
  'session-renewal-failed': 'warn',
  'session-suspect': 'warn',
  'session-ended': 'info',
  'name-in-use': 'warn',
  'campaign-ended': 'debug',
  granted: 'info',
  serving: 'info',
  suspected: 'warn',
  reopened: 'info',
  draining: 'info',
  'drain-overdue': 'warn',
  released: 'info',
  lost: 'warn',
  'acquire-failed': 'warn',
  'run-failed': 'warn',
  'handler-failed': 'warn',
  'work-refused': 'debug',
  'rebalancer-elected': 'info',
  'rebalancer-deposed': 'info',
  'plan-made': 'info',
  'move-requested': 'info',
  'move-ended': 'info',
  'rebalance-changed': 'info',
  'eviction-marked': 'warn',
  'eviction-closed': 'warn',
  'mirror-listed': 'info',
  'mirror-broken': 'warn',
  'map-published': 'debug',
  'map-gap': 'info',
  'map-resynced': 'info',
  'store-reachable': 'info',
  'broadcast-connected': 'info',
  'http-request': 'debug',
  alarm: 'warn',
}

/** What no policy resolves by itself, so that somebody must come. */
const ERRORS: ReadonlySet<AlarmCode> = new Set<AlarmCode>([
  'fence-ahead',
  'store-rewound',
  'store-alarm',
  'invariant-broken',
])
const QUIET_ENDS: ReadonlySet<SessionEndCause> = new Set<SessionEndCause>(['closed'])

export function createLogTelemetry(
  logger: pino.Logger,
  monotonicMs: () => number = () => performance.now(),
): Telemetry {
  const refusals = new Map<string, { nextMs: number; leftOut: number }>()
  return {
    record(event) {
      const level = levelOf(event)
      if (!logger.isLevelEnabled(level)) return
      const { type, ...fields } = event
      if (event.type !== 'work-refused') {
        logger[level]({ event: type, ...fields }, messageOf(event))
        return
      }
      const key = `${event.group} ${event.reason}`
      const seen = refusals.get(key) ?? { nextMs: Number.NEGATIVE_INFINITY, leftOut: 0 }
      refusals.set(key, seen)
      const nowMs = monotonicMs()
      if (nowMs < seen.nextMs) {
        seen.leftOut++
        return
      }
      const { leftOut } = seen
      refusals.set(key, { nextMs: nowMs + REFUSALS_EVERY_MS, leftOut: 0 })
      logger[level]({ event: type, ...fields, leftOut }, messageOf(event))
    },
  }
}

export function levelOf(event: TelemetryEvent): Level {
  switch (event.type) {
    case 'session-ended':
    case 'rebalancer-deposed':
      return QUIET_ENDS.has(event.cause) ? 'info' : 'warn'
    case 'lost':
      return event.cause === 'stopped' ? 'info' : 'warn'
    case 'store-reachable':
      return event.reachable ? 'info' : 'warn'
    case 'broadcast-connected':
      return event.connected ? 'info' : 'warn'
    case 'alarm':
      return ERRORS.has(event.code) ? 'error' : 'warn'
    default:
      return LEVELS[event.type]
  }
}

/** `granted: orders/17@1764440000.5 orders-2`: what, where, who; the fields have the rest. */
function messageOf(event: TelemetryEvent): string {
  const what = event.type.replaceAll('-', ' ')
  switch (event.type) {
    case 'http-request':
      return `${what}: ${event.method} ${event.route} ${event.status}`
    case 'alarm':
      return `${what}: ${event.code} in ${event.group}: ${event.detail}`
    case 'store-reachable':
      return event.reachable ? 'store reachable' : `store unreachable: ${event.detail}`
    case 'broadcast-connected':
      return event.connected ? 'broadcast connected' : 'broadcast disconnected'
    default:
      return `${what}: ${placeOf(event)}${'member' in event ? ` ${event.member}` : ''}`
  }
}

function placeOf(event: Extract<TelemetryEvent, { group: unknown }>): string {
  if (!('partition' in event)) return event.group
  const place = `${event.group}/${event.partition}`
  return 'generation' in event ? `${place}@${event.incarnation}.${event.generation}` : place
}
