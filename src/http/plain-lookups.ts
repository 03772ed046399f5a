/**
 * Look-ups as nearly every client writes them, answered before the framework: routing, parsing and
 * checking a request that one pattern tells whole would cost more than the answer.
 *
 *     request ─ one plain key, group known, not closing? ─ yes ─ answered here
 *                                                                      └ no ── the framework's
 *
 * All that is not plain (escapes, other methods, unknown groups, bad queries, failures) takes
 * the route, which answers the same to what is plain.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Groups } from '../ports/group-access.ts'
import type { HttpLogger } from './error-replies.ts'
import type { OwnerReplies } from './owner-replies.ts'
import { KEY_LENGTH_MAX } from './request-schemas.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

export type PlainLookupOptions = {
  readonly groups: Groups
  readonly replies: OwnerReplies
  readonly isClosing: () => boolean
  readonly logger?: HttpLogger | undefined
}

const GROUPS = '/v1/groups/'
const OWNER_OF = '/owner?key='

/** A server that asks `others` what is no plain look-up. */
export function createLookupServer(options: PlainLookupOptions, others: Handler): Server {
  return createServer((request, response) => {
    if (!answers(options, request, response)) others(request, response)
  })
}

/** False: nothing was sent. */
function answers(
  { groups, replies, isClosing, logger }: PlainLookupOptions,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const { method, url = '' } = request
  // Then no key is longer than the route takes.
  if (method !== 'GET' || url.length > KEY_LENGTH_MAX) return false
  const groupEnd = url.indexOf(OWNER_OF, GROUPS.length)
  if (groupEnd < 0 || !url.startsWith(GROUPS) || isClosing()) return false
  const key = url.slice(groupEnd + OWNER_OF.length)
  if (!isPlain(key)) return false
  try {
    const group = url.slice(GROUPS.length, groupEnd)
    const found = groups.find(group)
    if (found === null) return false
    replies.send(key, { group, view: found.view }, request, response)
    return true
  } catch (error) {
    // The route meets the same failure and can tell of it, unless the reply has gone out already.
    if (!response.headersSent) return false
    logger?.error({ err: error, url }, 'failed')
    return true
  }
}

/** By the character's code, up to 127. */
const PLAIN = Array.from({ length: 128 }, (_, code) => /[\w.~:@-]/.test(String.fromCharCode(code)))

/** Nothing in it would have to be decoded. A pattern would take three times as long. */
function isPlain(key: string): boolean {
  for (let index = 0; index < key.length; index += 1) {
    if (PLAIN[key.charCodeAt(index)] !== true) return false
  }
  return key !== ''
}
