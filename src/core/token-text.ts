/**
 * A token as one line of text, for headers and logs that programs read:
 *
 *   v1:<group>/<partition>@<incarnation>.<generation>#<session>    v1:orders/17@1764440000.5#00c0ffee00c0ffee
 *
 * Numbers are decimal without leading zeros, the session is 16 lower-case hex digits. Decoding is strict:
 * exactly one text stands for a token, and what is not such a text is an error that says why, for a token
 * read wrongly may be a token that is accepted wrongly. A later form begins with another version.
 */
import type { GroupName } from './ids.ts'
import { groupName, sessionId } from './ids.ts'
import { createTenureError, isTenureError, type TenureError } from './tenure-error.ts'
import type { Token } from './token.ts'

const TEXT = /^v1:([^/]+)\/(\d{1,10})@(\d{1,10})\.(\d{1,10})#([^#]+)$/
const VERSION = /^v(\d+):/
/** No text that is longer is looked at: names and numbers have limits. */
const TEXT_LENGTH_MAX = 160
const SHOWN_LENGTH_MAX = 80
const PARTITION_MAX = 2 ** 31 - 1
/** The bounds of the 64-bit form, so that every fence takes the same tokens. */
const INCARNATION_MAX = 2 ** 32 - 1
const GENERATION_MAX = 2 ** 31 - 1

/**
 * @throws TenureError `invalid-argument` for what is no token
 * @example encodeTokenHeader(p.token) // 'v1:orders/17@1764440000.5#00c0ffee00c0ffee'
 */
export function encodeTokenHeader(token: Token): string {
  const { group, partition, incarnation, generation, session } = checkToken(token)
  return `v1:${group}/${partition}@${incarnation}.${generation}#${session}`
}

/** @throws TenureError `invalid-argument`, saying what is wrong, unless {@link encodeTokenHeader} made it. */
export function decodeTokenHeader(text: string): Token {
  const version = VERSION.exec(text)?.[1]
  if (version !== undefined && version !== '1') {
    throw malformed(
      `a token of version ${version}: version 1 is understood here, upgrade this side`,
    )
  }
  const parts = text.length > TEXT_LENGTH_MAX ? null : TEXT.exec(text)
  if (parts === null) {
    throw malformed(
      `"${text.slice(0, SHOWN_LENGTH_MAX)}" is no token: v1:<group>/<partition>@<incarnation>.<generation>#<session>`,
    )
  }
  const [, group, partition, incarnation, generation, session] = parts
  const token = checkToken({
    group,
    partition: Number(partition),
    incarnation: Number(incarnation),
    generation: Number(generation),
    session,
  })
  if (encodeTokenHeader(token) !== text) throw malformed('numbers of a token have no leading zeros')
  return token
}

/**
 * The value as a token, checked field by field: it may have come through JSON or from untyped code.
 *
 * @throws TenureError `invalid-argument` that names the field
 */
export function checkToken(value: unknown): Token {
  if (typeof value !== 'object' || value === null) {
    throw malformed(`a token was expected: hand on p.token whole`)
  }
  const token = value as Readonly<Record<keyof Token, unknown>>
  return {
    group: checkName('group', () => groupName(checkText('group', token.group))),
    partition: checkNumber('partition', token.partition, 0, PARTITION_MAX),
    incarnation: checkNumber('incarnation', token.incarnation, 0, INCARNATION_MAX),
    generation: checkNumber('generation', token.generation, 1, GENERATION_MAX),
    session: checkName('session', () => sessionId(checkText('session', token.session))),
  }
}

/** @throws TenureError `invalid-argument`: malformed, or a token of another group than the fence's. */
export function checkTokenOf(group: GroupName, value: unknown): Token {
  const token = checkToken(value)
  if (token.group === group) return token
  throw createTenureError(
    'invalid-argument',
    `a token of group ${token.group} at a fence of group ${group}: use one fence per group`,
    { details: { field: 'token.group', expected: group, given: token.group } },
  )
}

function checkNumber(field: string, value: unknown, least: number, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) {
    return value
  }
  throw malformed(`token.${field} must be a whole number from ${least} to ${most}`, field)
}

function checkText(field: string, value: unknown): string {
  if (typeof value === 'string') return value
  throw malformed(`token.${field} must be a string`, field)
}

function checkName<T>(field: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!isTenureError(error, 'invalid-name')) throw error
    throw malformed(`token.${field}: ${error.message}`, field)
  }
}

function malformed(message: string, field?: string): TenureError {
  return createTenureError(
    'invalid-argument',
    message,
    field === undefined ? {} : { details: { field: `token.${field}` } },
  )
}
