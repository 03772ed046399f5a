/**
 * Shapes of what is answered, once for the serializers and the OpenAPI document, whose components they
 * become. A field that is not named here never leaves the process.
 */
import { type TObject, Type } from '@sinclair/typebox'
import { groupConfig } from './config-schemas.ts'
import { count, named, nullable, oneOf, phase, text } from './schema-forms.ts'

export const FRESHNESS = {
  version: text('Version of the map, `<incarnation>.<revision>`: the ETag without its quotes.'),
  asOfMs: count('Wall time at which the map was last known to be current.'),
  ageMs: count('Milliseconds since then.'),
  stale: Type.Boolean({
    description: 'True when the store has not confirmed the map for a session TTL.',
  }),
}

export const operatorMark = named('OperatorMark', {
  by: Type.String(),
  why: Type.String(),
  atMs: Type.Integer(),
  untilMs: nullable(Type.Integer()),
})

const how = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  enum: ['election', 'hand-over', 'forced', null],
  description: 'How the owner came by its grant.',
})

export const partitionView = named('Partition', {
  partition: Type.Integer(),
  phase,
  incarnation: Type.Integer(),
  generation: Type.Integer(),
  owner: nullable(
    Type.Object({
      member: Type.String(),
      session: Type.String(),
      address: Type.String(),
      live: Type.Boolean({ description: 'False: its session is gone.' }),
    }),
  ),
  serving: Type.Boolean({ description: 'What the owner said last: a hint, outside the version.' }),
  how,
  move: nullable(
    Type.Object({
      id: Type.String(),
      to: nullable(Type.String()),
      reason: Type.String(),
      by: Type.String(),
      rewrites: Type.Integer(),
      atMs: Type.Integer(),
    }),
  ),
  previous: nullable(
    Type.Object({
      member: Type.String(),
      session: Type.String(),
      incarnation: Type.Integer(),
      generation: Type.Integer(),
    }),
  ),
  disabled: Type.Boolean(),
  why: nullable(text('Why nobody owns it, or why it does not move.')),
  changedAtMs: Type.Integer(),
})

export const ownerView = named('Owner', {
  group: Type.String(),
  partition: Type.Integer(),
  owner: nullable(
    Type.Object({ member: Type.String(), address: Type.String(), live: Type.Boolean() }),
  ),
  token: nullable(
    Type.Object({
      incarnation: Type.Integer(),
      generation: Type.Integer(),
      session: Type.String(),
    }),
  ),
  phase,
  serving: Type.Boolean(),
  why: nullable(Type.String()),
  ...FRESHNESS,
})

export const memberView = named('Member', {
  member: Type.String(),
  session: Type.String(),
  address: Type.String(),
  weight: Type.Integer(),
  capacity: nullable(Type.Integer()),
  zone: Type.String(),
  labels: Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string' },
  }),
  state: oneOf('active', 'leaving'),
  versions: Type.Array(Type.Integer()),
  owned: Type.Integer(),
  cordon: nullable(operatorMark),
  evicting: Type.Boolean(),
})

export const groupSummary = named('Group', {
  group: Type.String(),
  partitions: Type.Integer(),
  owned: Type.Integer(),
  vacant: Type.Integer(),
  moving: Type.Integer(),
  halted: Type.Integer(),
  notServing: Type.Integer(),
  members: Type.Integer(),
  rebalancer: nullable(Type.String()),
  incarnation: Type.Integer(),
  frozen: nullable(operatorMark),
  disabled: nullable(operatorMark),
  alarms: Type.Array(Type.String()),
  ...FRESHNESS,
})
export const rebalanceRecord = named('Rebalance', {
  id: Type.String(),
  kind: Type.Object({
    type: oneOf('balance', 'move', 'drain'),
    partition: Type.Optional(Type.Integer()),
    to: Type.Optional(Type.String()),
    member: Type.Optional(Type.String()),
  }),
  state: oneOf('requested', 'running', 'done', 'failed', 'cancelling', 'cancelled'),
  reason: Type.String(),
  by: Type.String(),
  planned: nullable(count('Moves planned when it began running; null before.')),
  moved: Type.Integer(),
  requestedAtMs: Type.Integer(),
  finishedAtMs: nullable(Type.Integer()),
  note: Type.String(),
})

export const dryRunPlan = named('Plan', {
  dryRun: Type.Literal(true),
  count: count('Moves in the whole plan.'),
  truncated: Type.Boolean({ description: 'True when `moves` shows only the first of them.' }),
  note: Type.String(),
  moves: Type.Array(
    Type.Object({
      partition: Type.Integer(),
      from: nullable(Type.String()),
      to: nullable(Type.String()),
    }),
  ),
  ...FRESHNESS,
})

export const problem = named('Problem', {
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  code: text('Stable; what programs decide by.'),
  detail: text('For people: what is wrong and what to do about it.'),
  requestId: Type.String(),
  errors: Type.Optional(
    Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), {
      description: 'With 400: each field that was refused.',
    }),
  ),
})

/** What the OpenAPI document lists under components. */
export const NAMED_SCHEMAS: readonly TObject[] = [
  ...[operatorMark, partitionView, ownerView, memberView, groupSummary, groupConfig],
  ...[rebalanceRecord, dryRunPlan, problem],
]
