/**
 * Identifiers. Strings are branded so that a member name never stands where a session id belongs.
 */
import { createTenureError } from './tenure-error.ts'

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** Name of a group; also a NATS subject token and an etcd key segment. */
export type GroupName = Branded<'GroupName'>
/** Stable name of a worker in a group (`orders-2`); survives its sessions. */
export type MemberName = Branded<'MemberName'>
/** One life of a member: its etcd lease id as 16 lower-case hex digits, 1 .. 2^63-1, random. */
export type SessionId = Branded<'SessionId'>
/** Unique id of one write of one record; settles unknown outcomes. 16 hex digits, random. */
export type OperationId = Branded<'OperationId'>
/** A partition's number, 0 .. P-1. */
export type PartitionId = number

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/
const HEX_64 = /^[0-9a-f]{16}$/

/** @throws TenureError `invalid-name` unless 1-64 of letters, digits, `_`, `-`, first alphanumeric. */
export function groupName(text: string): GroupName {
  return checkName('group', text) as GroupName
}

/** @throws TenureError `invalid-name`, same rule as {@link groupName}. */
export function memberName(text: string): MemberName {
  return checkName('member', text) as MemberName
}

/** @throws TenureError `invalid-name` unless 16 hex digits below 2^63 and not zero. */
export function sessionId(text: string): SessionId {
  if (!HEX_64.test(text) || text > '7fffffffffffffff' || text === '0000000000000000') {
    throw createTenureError('invalid-name', `session id "${text}" is not 16 hex digits below 2^63`)
  }
  return text as SessionId
}

export function operationId(text: string): OperationId {
  return text as OperationId
}

function checkName(kind: string, text: string): string {
  if (NAME.test(text)) return text
  throw createTenureError(
    'invalid-name',
    `${kind} name "${text}" must be 1-64 letters, digits, "_" or "-", starting with a letter or digit`,
  )
}
