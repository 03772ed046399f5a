/** The few forms that schemas are made of beside TypeBox's own. */
import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'

/** Unknown fields are refused. */
export const closed = { additionalProperties: false } as const

/** By a type list, which the serializer decides by type alone. */
export const nullable = <T extends TSchema>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, $id: undefined, type: [schema['type'], 'null'] })

export const oneOf = <T extends string>(...values: readonly T[]) =>
  Type.Unsafe<T>({ type: 'string', enum: values })

/** Becomes a component of the OpenAPI document. */
export const named = <T extends TProperties>($id: string, properties: T) =>
  Type.Object(properties, { $id })

/** A reference to a named shape. */
export const refTo = <T extends TSchema>(schema: T) =>
  Type.Unsafe<Static<T>>({ $ref: `${schema.$id}#` })

export const text = (description: string) => Type.String({ description })
export const count = (description: string) => Type.Integer({ description })

/** A partition's phase. */
export const phase = oneOf('vacant', 'owned', 'revoking', 'halted')
/** Names of groups and members. */
export const name = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' })
