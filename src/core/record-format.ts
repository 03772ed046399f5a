/** What all stored records share: JSON objects with a format version `v`. */
import { createTenureError } from './tenure-error.ts'

export const RECORD_VERSION = 1

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Parses a record and checks its version.
 * @throws TenureError `record-malformed` when it is no JSON object, `record-version-unknown` when its
 * `v` is not one that this build knows; then upgrade this process before it touches the group.
 */
export function readVersion(text: string, what: string): Record<string, unknown> {
  const value = parseJson(text, what)
  if (!isObject(value)) throw createTenureError('record-malformed', `${what} is no JSON object`)
  if (value['v'] !== RECORD_VERSION) {
    throw createTenureError(
      'record-version-unknown',
      `${what} has format version ${String(value['v'])}, this build knows ${RECORD_VERSION}: upgrade it`,
      { details: { found: value['v'], known: RECORD_VERSION } },
    )
  }
  return value
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw createTenureError('record-malformed', `${what} is no JSON`, {
      cause,
    })
  }
}
