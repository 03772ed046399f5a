/** Shapes of what callers send: paths, queries and bodies. What is not named here is refused. */
import { type Static, Type } from '@sinclair/typebox'
import { closed, name, nullable, phase } from './schema-forms.ts'

/** One tagged alternative each, so that a bad field is named and not "matches no alternative". */
const rebalanceKind = Type.Unsafe<
  | { type: 'balance' }
  | { type: 'move'; partition: number; to: string }
  | { type: 'drain'; member: string }
>({
  type: 'object',
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: [
    Type.Object({ type: Type.Literal('balance') }, closed),
    Type.Object(
      { type: Type.Literal('move'), partition: Type.Integer({ minimum: 0 }), to: name },
      closed,
    ),
    Type.Object({ type: Type.Literal('drain'), member: name }, closed),
  ],
})
/** Who asks and why; both optional. */
const asked = {
  reason: Type.Optional(Type.String({ maxLength: 500, description: 'Kept with the change.' })),
  by: Type.Optional(Type.String({ maxLength: 128, description: 'Who asks; kept too.' })),
}

export const askedBody = Type.Object(asked, closed)
export type AskedBody = Static<typeof askedBody>

export const freezeBody = Type.Object(
  { ...asked, untilMs: Type.Optional(nullable(Type.Integer({ minimum: 0 }))) },
  closed,
)
export const moveBody = Type.Object({ ...asked, to: name }, closed)
export const rebalanceBody = Type.Object(
  {
    ...asked,
    kind: Type.Optional(rebalanceKind),
    dryRun: Type.Optional(Type.Boolean({ description: 'Answer the plan, change nothing.' })),
  },
  closed,
)

const PAGE_LIMIT_MAX = 1000
export const partitionsQuery = Type.Object(
  {
    owner: Type.Optional(Type.String({ maxLength: 64 })),
    state: Type.Optional(phase),
    moving: Type.Optional(Type.Boolean()),
    limit: Type.Integer({ minimum: 1, maximum: PAGE_LIMIT_MAX, default: 100 }),
    cursor: Type.Optional(
      Type.String({ pattern: '^[0-9]{1,7}$', description: '`nextCursor` of the page before.' }),
    ),
  },
  closed,
)
/** Characters. */
export const KEY_LENGTH_MAX = 4096
export const ownerQuery = Type.Object(
  { key: Type.String({ minLength: 1, maxLength: KEY_LENGTH_MAX }) },
  closed,
)
export const noQuery = Type.Object({}, closed)

export const groupParams = Type.Object({ group: Type.String() })
export const partitionParams = Type.Object({
  group: Type.String(),
  partition: Type.Integer({ minimum: 0 }),
})
export const memberParams = Type.Object({ group: Type.String(), member: name })
export const rebalanceParams = Type.Object({ group: Type.String(), id: Type.String() })
