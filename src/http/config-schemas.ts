/** A group's settings, whole as answered and in part as changed. Ranges are checked by the core. */
import { type TProperties, Type } from '@sinclair/typebox'
import { closed, named, oneOf } from './schema-forms.ts'

const drainPolicy = oneOf('wait', 'fence', 'evict')
const milliseconds = Type.Integer({ minimum: 0 })

const drain = { deadlineMs: milliseconds, policy: drainPolicy }
const acquire = { deadlineMs: milliseconds }
const settle = { firstGrantMs: milliseconds, balanceMs: milliseconds }
const budget = {
  movesInFlight: Type.Integer({ minimum: 1 }),
  movesInFlightPerMember: Type.Integer({ minimum: 1 }),
  movesPerMinute: Type.Integer({ minimum: 0, description: '0: no limit.' }),
}
const identity = {
  partitions: Type.Integer({ minimum: 1 }),
  leaseTtlMs: milliseconds,
  fenced: Type.Boolean(),
}

export const groupConfig = named('GroupConfig', {
  ...identity,
  marginMs: milliseconds,
  drain: Type.Object(drain),
  acquire: Type.Object(acquire),
  settle: Type.Object(settle),
  restartGraceMs: milliseconds,
  budget: Type.Object(budget),
})

const partial = <T extends TProperties>(properties: T) =>
  Type.Partial(Type.Object(properties), closed)

/** Identity settings may be repeated as they stand; another value is a 409 that names both. */
export const groupSettings = Type.Partial(
  Type.Object({
    ...identity,
    marginMs: milliseconds,
    drain: partial(drain),
    acquire: partial(acquire),
    settle: partial(settle),
    restartGraceMs: milliseconds,
    budget: partial(budget),
  }),
  { ...closed, minProperties: 1 },
)
