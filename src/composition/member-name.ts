/** A member's name when nobody gave one: the host's, made legal, with four random hex digits. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { MemberName } from '../core/ids.ts'
import { memberName } from '../core/ids.ts'

export function chooseMemberName(given: string | undefined): MemberName {
  if (given !== undefined && given !== '') return memberName(given)
  const host = hostname()
    .replace(/[^A-Za-z0-9_-]/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
  return memberName(`${host.slice(0, 48) || 'worker'}-${randomBytes(2).toString('hex')}`)
}
