/**
 * The worker's side of an HTTP resource that has a fence: requests that carry the token, and refusals as
 * errors or values. It retries nothing: a request that got no answer may have had its effect.
 *
 *   const fence = createHttpFence({ baseUrl: 'http://ledger:8080' })
 *   acquire: async (p) => { await fence.seal(p.token) ... }
 *   run: ... await fencedFetch(p.token)('http://ledger:8080/apply', { method: 'POST', body })
 *
 * A reply that is handed on is the caller's to read to its end, as with any `fetch`; else each keeps a
 * connection.
 *
 * Not promised: anything by a resource that ignores the header. A good reply of a route that does not say
 * that it is fenced is an error here; `seal` finds that out before the first effect.
 */

import { groupName } from '../core/ids.ts'
import { createTenureError, type TenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import { checkTokenOf, encodeTokenHeader } from '../core/token-text.ts'
import { type Fence, fenceRefused } from './fence.ts'
import {
  FENCE_HEADER,
  FENCE_VERSION,
  type FenceRefusal,
  readRefusal,
  SEAL_PATH,
  TOKEN_HEADER,
} from './http-problem.ts'

export type Fetch = typeof fetch

/** Arguments of a `fetch`. */
export type HttpEffect = { readonly url: string | URL; readonly init?: RequestInit }

export type HttpFenceOptions = {
  /** Of the resource; the seal's path is taken below it. */
  readonly baseUrl: string
  /** Tokens of another group are refused before anything is sent [the resource refuses them]. */
  readonly group?: string
  /** [`/tenure/seal`] */
  readonly sealPath?: string
  readonly fetch?: Fetch
}

export interface HttpFence extends Fence<HttpEffect, Response> {
  /**
   * Seals, and gives the body of the resource's answer: what it says the new owner starts from.
   * @throws TenureError `fence-refused` with `details.highest`, and as `Fence.seal`
   */
  sealAndRead(token: Token): Promise<unknown>
}

/**
 * A `fetch` that sends the token with every request.
 *
 * @throws TenureError by the returned function: `fence-refused` with `details.highest` for a refusal,
 *   `fence-not-ready` for a good reply of a route without a fence. All other replies are handed on, and
 *   errors of `fetch` are let through.
 */
export function fencedFetch(token: Token, send: Fetch = fetch): Fetch {
  let header: string | null = null
  return async (input, init) => {
    header ??= encodeTokenHeader(token)
    const answer = await sendWithToken(send, header, input, init)
    if (answer.refusal !== null) throw fenceRefused(token, answer.refusal)
    return answer.response
  }
}

/** @throws TenureError `invalid-name` for the group; its functions as {@link fencedFetch}, no refusals. */
export function createHttpFence(options: HttpFenceOptions): HttpFence {
  const send = options.fetch ?? fetch
  const group = options.group === undefined ? null : groupName(options.group)
  const sealUrl = `${options.baseUrl.replace(/\/$/, '')}${options.sealPath ?? SEAL_PATH}`
  const headerOf = (token: Token) => encodeTokenHeader(checkTokenOf(group ?? token?.group, token))
  // An owner sends the same one with each of its effects.
  const headers = new WeakMap<Token, string>()
  const knownHeaderOf = (token: Token) => {
    const known = headers.get(token)
    if (known !== undefined) return known
    const header = headerOf(token)
    headers.set(token, header)
    return header
  }
  const requestSeal = async (token: Token) => {
    const answer = await sendWithToken(send, headerOf(token), sealUrl, { method: 'POST' })
    if (answer.refusal === null) await requireSealed(answer.response, sealUrl)
    return answer
  }
  return {
    async seal(token) {
      const { refusal, response } = await requestSeal(token)
      if (refusal === null) {
        // A body that nobody reads would keep the connection from serving again.
        await response.arrayBuffer()
        return { ok: true }
      }
      if (refusal.highest === null) throw notReady(`${sealUrl} refused and named no token`)
      return { ok: false, reason: 'stale', highest: refusal.highest }
    },
    async sealAndRead(token) {
      const { refusal, response } = await requestSeal(token)
      if (refusal !== null) throw fenceRefused(token, refusal)
      return response.json()
    },
    async guard(token, { url, init }) {
      const { refusal, response } = await sendWithToken(send, knownHeaderOf(token), url, init)
      if (refusal !== null) return { ok: false, ...refusal }
      return { ok: true, value: response }
    },
  }
}

type Answer = { readonly refusal: FenceRefusal | null; readonly response: Response }

async function sendWithToken(
  send: Fetch,
  header: string,
  input: Parameters<Fetch>[0],
  init: RequestInit | undefined,
): Promise<Answer> {
  // Not spread and then added to: the engine makes such an object a slow one, which `fetch` reads often.
  const request: RequestInit = Object.assign({}, init, { headers: withToken(header, input, init) })
  const response = await send(input, request)
  if (response.status === 409) {
    const body: unknown = await response
      .clone()
      .json()
      .catch(() => null)
    const refusal = readRefusal(body)
    // The caller gets the refusal alone, so nobody else would read this body.
    if (refusal !== null) await response.body?.cancel()
    return { refusal, response }
  }
  if (response.ok && response.headers.get(FENCE_HEADER) !== FENCE_VERSION) {
    throw notReady(
      `${response.url} answered without a fence (no header ${FENCE_HEADER}: ${FENCE_VERSION}): register fencePlugin there, before the route`,
    )
  }
  return { refusal: null, response }
}

function withToken(
  header: string,
  input: Parameters<Fetch>[0],
  init: RequestInit | undefined,
): NonNullable<RequestInit['headers']> {
  const given = init?.headers ?? (input instanceof Request ? input.headers : null)
  // `fetch` copies what it is given; as mostly, a copy of ours before that is not needed.
  if (given === null) return { [TOKEN_HEADER]: header }
  const headers = new Headers(given)
  headers.set(TOKEN_HEADER, header)
  return headers
}

async function requireSealed(response: Response, sealUrl: string): Promise<void> {
  if (response.ok) return
  const text = await response.text()
  if (response.status === 400) {
    throw createTenureError('invalid-argument', `${sealUrl} refused the token: ${text}`)
  }
  throw notReady(
    `${sealUrl} answered ${response.status}: ${response.status === 404 ? 'register fencePlugin there' : text}`,
  )
}

function notReady(message: string): TenureError {
  return createTenureError('fence-not-ready', message)
}
