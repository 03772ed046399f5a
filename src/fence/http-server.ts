/**
 * The fence of an HTTP resource, as a Fastify plugin. Routes that are added after it and that change
 * something (not GET, HEAD, OPTIONS) take the caller's token from the header and are refused early when it
 * is not the sealed one. The check that counts is the handler's own, one step with its effect:
 *
 *   await app.register(fencePlugin, { group: 'orders', store: openHighWaterFile('fence.log') })
 *   app.post('/apply', (request) => request.fence.commit(() => ledger.apply(request.body)))
 *
 * `commit` checks and runs its function in the same turn, and a seal waits until it has settled. A fenced
 * handler that answers with success and never committed is a bug that would pass for a fence: the caller
 * gets 500 instead. `config: { fence: false }` takes a route out, `config: { fence: true }` a reading one in.
 *
 *   POST /tenure/seal    header with the token -> 200 what `sealed` gives | refused as the other routes
 *
 * What goes over the wire is in `http-problem.ts`. Who may call at all is not asked here: a token is proof
 * of order, not of identity, so authenticate the callers as you would without it.
 *
 * Not promised: anything for a resource that several processes serve with a mark of their own each; their
 * effects meet in a database, and that is where the fence belongs. Nor for an effect that the process
 * handed on and that is not done when its function settles.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { type GroupName, groupName } from '../core/ids.ts'
import { createTenureError, isTenureError, type TenureError } from '../core/tenure-error.ts'
import type { Token } from '../core/token.ts'
import { checkTokenOf, decodeTokenHeader } from '../core/token-text.ts'
import { fenceRefused } from './fence.ts'
import { type CommitGate, createCommitGate } from './http-commit-gate.ts'
import type { HighWaterStore } from './http-high-water.ts'
import {
  FENCE_HEADER,
  FENCE_VERSION,
  type FenceProblem,
  type FenceRefusal,
  fenceProblem,
  PROBLEM_TYPE,
  refusalProblem,
  SEAL_PATH,
  TOKEN_HEADER,
} from './http-problem.ts'

export {
  createMemoryHighWater,
  type HighWaterFile,
  type HighWaterStore,
  openHighWaterFile,
} from './http-high-water.ts'

export interface RequestFence {
  readonly token: Token
  /**
   * Runs the effect if the token is the sealed one at this moment, and gives what it returns.
   * @throws TenureError `fence-refused`: let it through, the plugin answers 409
   */
  commit<T>(effect: () => T | Promise<T>): Promise<T>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Of fenced routes only. */
    fence: RequestFence
  }
  interface FastifyContextConfig {
    fence?: boolean
  }
}

export type FencePluginOptions = {
  readonly group: string
  /** Keeps the highest tokens, as durably as the effects are kept. */
  readonly store: HighWaterStore
  /** [`/tenure/seal`] */
  readonly sealPath?: string
  /** How long a seal waits for effects that run [5000]. */
  readonly sealTimeoutMs?: number
  /** Body of the answer to a seal: what the new owner starts from, a checkpoint say. */
  readonly sealed?: (token: Token) => object | Promise<object>
  /** Told of every refused effect. */
  readonly refused?: (token: Token, refusal: FenceRefusal, request: FastifyRequest) => void
}

const READING = new Set(['GET', 'HEAD', 'OPTIONS'])
const SEAL_TIMEOUT_MS = 5000
/** Of headers that were read; more than a resource has owners at a time. */
const KNOWN_MAX = 1000

type Plugin = {
  readonly group: GroupName
  readonly gate: CommitGate
  readonly options: FencePluginOptions
  /** Tokens by their header: an owner sends the same one with each of its requests. */
  readonly known: Map<string, Token>
}

/** Applies to the scope that it is registered in, and to those inside. */
export function fencePlugin(
  app: FastifyInstance,
  options: FencePluginOptions,
  done: () => void,
): void {
  const plugin: Plugin = {
    group: groupName(options.group),
    gate: createCommitGate(options.store, options.sealTimeoutMs ?? SEAL_TIMEOUT_MS),
    options,
    known: new Map(),
  }
  app.decorateRequest('fence')
  addSealRoute(app, plugin)
  app.addHook('onRoute', (route) => {
    if (isFenced(route)) fenceRoute(route, plugin)
  })
  done()
}

// Fastify's sign for a plugin that acts on the scope it is registered in, not on one of its own.
Object.assign(fencePlugin, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'tenure-fence',
})

function isFenced({ method, config }: RouteOptions): boolean {
  const fence = (config as { fence?: boolean } | undefined)?.fence
  return fence ?? ![method].flat().every((one) => READING.has(one))
}

function addSealRoute(app: FastifyInstance, plugin: Plugin): void {
  const { gate, options } = plugin
  app.post(options.sealPath ?? SEAL_PATH, { config: { fence: false } }, async (request, reply) => {
    reply.header(FENCE_HEADER, FENCE_VERSION)
    const token = readToken(request, plugin)
    if ('problem' in token) return sendProblem(reply, token.problem)
    try {
      const outcome = await gate.seal(token)
      if (!outcome.ok) return sendProblem(reply, refusalProblem(token, outcome))
    } catch (error) {
      request.log.error({ err: error }, 'the fence could not be sealed')
      const detail = isTenureError(error, 'timed-out') ? error.message : 'the mark was not kept'
      return sendProblem(reply, fenceProblem('fence-not-ready', detail))
    }
    return (await options.sealed?.(token)) ?? {}
  })
}

/** The handler runs inside ours, after the user's own hooks, so that strangers are turned away first. */
function fenceRoute(route: RouteOptions, plugin: Plugin): void {
  const { handler } = route
  route.handler = async function fenced(request, reply) {
    reply.header(FENCE_HEADER, FENCE_VERSION)
    const token = readToken(request, plugin)
    if ('problem' in token) return sendProblem(reply, token.problem)
    const early = plugin.gate.look(token)
    if (!early.ok) return refuse(plugin, token, early, request, reply)
    request.fence = requestFence(plugin, token)
    try {
      return await handler.call(this, request, reply)
    } catch (error) {
      const refusal = refusals.get(error as object)
      if (refusal === undefined) throw error
      return refuse(plugin, token, refusal, request, reply)
    }
  }
  route.onSend = [[route.onSend ?? []].flat(), refuseUncommitted].flat()
}

/** Which refusal an error tells of. The error itself may be caught and wrapped by nobody but us. */
const refusals = new WeakMap<object, FenceRefusal>()

/** Whether a request's handler ever committed is kept with what it commits by. */
type OpenFence = RequestFence & { hasCommitted: boolean }

function requestFence({ gate }: Plugin, token: Token): OpenFence {
  const fence: OpenFence = {
    token,
    hasCommitted: false,
    async commit(effect) {
      fence.hasCommitted = true
      const outcome = await gate.commit(token, effect)
      if (outcome.ok) return outcome.value
      const error = fenceRefused(token, outcome)
      refusals.set(error, outcome)
      throw error
    },
  }
  return fence
}

function refuseUncommitted(
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
  done: (error: null, payload: unknown) => void,
): void {
  if (reply.statusCode >= 400 || (request.fence as OpenFence | undefined)?.hasCommitted === true) {
    done(null, payload)
    return
  }
  const problem = fenceProblem(
    'invariant-broken',
    'the handler of a fenced route did nothing inside request.fence.commit',
  )
  reply.code(problem.status).removeHeader('content-length').type(PROBLEM_TYPE)
  done(null, JSON.stringify(problem))
}

function refuse(
  { options }: Plugin,
  token: Token,
  refusal: FenceRefusal,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  options.refused?.(token, refusal, request)
  return sendProblem(reply, refusalProblem(token, refusal))
}

function readToken(
  request: FastifyRequest,
  { group, known }: Plugin,
): Token | { readonly problem: FenceProblem } {
  try {
    const text = request.headers[TOKEN_HEADER]
    if (typeof text !== 'string') throw missingToken()
    return known.get(text) ?? remember(known, text, checkTokenOf(group, decodeTokenHeader(text)))
  } catch (error) {
    if (!isTenureError(error)) throw error
    return { problem: fenceProblem('invalid-argument', error.message) }
  }
}

function remember(known: Map<string, Token>, text: string, token: Token): Token {
  if (known.size >= KNOWN_MAX) known.clear()
  known.set(text, token)
  return token
}

function missingToken(): TenureError {
  return createTenureError(
    'invalid-argument',
    `the header ${TOKEN_HEADER} is missing: send the owner's token, as fencedFetch does`,
  )
}

function sendProblem(reply: FastifyReply, problem: FenceProblem): FastifyReply {
  return reply
    .code(problem.status)
    .header('cache-control', 'no-store')
    .type(PROBLEM_TYPE)
    .send(JSON.stringify(problem))
}
