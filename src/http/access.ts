/**
 * Who may change something. Reads are open to whoever reaches the listener; a changing request needs
 *
 * - the bearer token, where one is configured;
 * - without a token, a listener on loopback only, and a request that no foreign web page can have
 *   caused: its `Host` is a loopback name (else a page's own name was pointed at this machine) and the
 *   browser, if it is one, does not call it cross-site.
 *
 * Not promised: anything against another user of this machine while no token is configured.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createProblem, type ProblemError } from './problem.ts'

export type ChangeRequest = {
  readonly authorization: string | undefined
  readonly host: string | undefined
  readonly fetchSite: string | undefined
}

/** Null: the request may change things. */
export type ChangeCheck = (request: ChangeRequest) => ProblemError | null

const LOOPBACK_V4 = /^(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/
const BEARER = /^Bearer +(\S+) *$/i

/** True for `localhost`, 127.0.0.0/8 and ::1 in any of their spellings, without port. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || name === '::1' || LOOPBACK_V4.test(name)
}

/** @param isLoopback says, at each request, whether every address listened on is loopback. */
export function createChangeCheck(
  bearerToken: string | undefined,
  isLoopback: () => boolean,
): ChangeCheck {
  if (bearerToken !== undefined && bearerToken !== '') return createBearerCheck(bearerToken)
  return (request) => {
    if (!isLoopback()) {
      return refuse(
        'changes are refused on a listener that is not loopback until a bearer token is configured: ' +
          'configure a token, or listen on 127.0.0.1',
      )
    }
    if (!isLoopbackHost(withoutPort(request.host ?? ''))) {
      return refuse(
        `changes without a token need a loopback Host, not "${request.host ?? ''}": call this server ` +
          'as 127.0.0.1 or localhost, or configure a token',
      )
    }
    if (request.fetchSite === 'cross-site' || request.fetchSite === 'same-site') {
      return refuse('changes from another web site are refused: configure a token and send it')
    }
    return null
  }
}

function createBearerCheck(bearerToken: string): ChangeCheck {
  const expected = digest(bearerToken)
  return ({ authorization }) => {
    const given = BEARER.exec(authorization ?? '')?.[1]
    // Digests are of one length, so the comparison's time says nothing about the token.
    if (given !== undefined && timingSafeEqual(digest(given), expected)) return null
    const detail =
      given === undefined
        ? 'changes need the configured token: send it as "Authorization: Bearer <token>"'
        : 'the bearer token is not the configured one: send that one'
    return createProblem('unauthorized', detail, {
      headers: { 'www-authenticate': 'Bearer realm="tenure"' },
    })
  }
}

function refuse(detail: string): ProblemError {
  return createProblem('unauthorized', detail, { status: 403 })
}

function withoutPort(host: string): string {
  return host.replace(/:\d+$/, '')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
