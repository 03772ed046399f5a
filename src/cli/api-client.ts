/**
 * Calls a `serve` process. Each call ends within its timeout; nothing is retried, because a change that
 * got no answer may have been made. Every failure becomes a CliError: no connection or no quorum exits
 * with 3, a problem document with the code's own exit code.
 *
 * Redirects are not followed: the bearer token goes to the configured address and nowhere else.
 */
import { CliError, interruptedError } from './cli-error.ts'
import type { CliContext } from './context.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'

/** Longer than what `serve` itself waits for the store. */
const CALL_TIMEOUT_MS = 15_000

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

type Call = {
  readonly method: Method
  /** Below the server's address: `/v1/groups`. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
}

export type ApiClient = {
  readonly url: string
  /** The reply's JSON, taken to be of the documented shape; undefined for an empty reply. */
  call<T>(call: Call): Promise<T>
  get<T>(path: string): Promise<T>
  /** An open event stream's reply; the caller ends it with the signal. */
  open(
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Response>
}

export function createApiClient(
  server: { readonly url: string; readonly token: string | null },
  context: Pick<CliContext, 'interrupted'>,
): ApiClient {
  const send = async (call: Call, signal: AbortSignal): Promise<Response> => {
    const headers = new Headers({ accept: 'application/json', ...call.headers })
    if (server.token !== null) headers.set('authorization', `Bearer ${server.token}`)
    if (call.body !== undefined) headers.set('content-type', 'application/json')
    const body = call.body === undefined ? null : JSON.stringify(call.body)
    try {
      const { method, path } = call
      return await fetch(`${server.url}${path}`, {
        method,
        headers,
        body,
        signal,
        redirect: 'manual',
      })
    } catch (error) {
      throw transportError(error, server.url, context.interrupted)
    }
  }
  const callJson = async <T>(call: Call): Promise<T> => {
    const end = endOf(context.interrupted)
    const timeoutMs = call.timeoutMs ?? CALL_TIMEOUT_MS
    const timeOut = () => end.abort(new DOMException('timed out', 'TimeoutError'))
    const timer = setTimeout(timeOut, timeoutMs)
    try {
      const response = await send(call, end.signal)
      return (await readReply(response, server.url, context.interrupted)) as T
    } finally {
      clearTimeout(timer)
      end.release()
    }
  }
  return {
    url: server.url,
    call: callJson,
    get: (path) => callJson({ method: 'GET', path }),
    open: async (path, headers, signal) => {
      const call: Call = {
        method: 'GET',
        path,
        headers: { accept: 'text/event-stream', ...headers },
      }
      const response = await send(call, endOf(signal, context.interrupted).signal)
      if (!response.ok) await readReply(response, server.url, context.interrupted)
      return response
    },
  }
}

type End = {
  readonly signal: AbortSignal
  abort(reason: unknown): void
  /** Follows the sources no longer: they may outlive many calls. */
  release(): void
}

/**
 * A signal of one's own that also ends with any of these. Node's own `AbortSignal.any` holds its sources
 * weakly: a timeout among them is collected with the garbage and then never fires (nodejs/node#57736).
 */
function endOf(...sources: readonly AbortSignal[]): End {
  const controller = new AbortController()
  const follow = (event: Event) => controller.abort((event.target as AbortSignal).reason)
  for (const source of sources) {
    if (source.aborted) controller.abort(source.reason)
    source.addEventListener('abort', follow, { once: true })
  }
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    release: () => {
      for (const source of sources) source.removeEventListener('abort', follow)
    },
  }
}

async function readReply(
  response: Response,
  url: string,
  interrupted: AbortSignal,
): Promise<unknown> {
  let text: string
  try {
    text = await response.text()
  } catch (error) {
    throw transportError(error, url, interrupted)
  }
  const body = parseJson(text)
  if (response.ok && (body !== undefined || text === '')) return body
  if (!response.ok) throw problemError(response, body)
  throw new CliError(
    'failed',
    EXIT.failed,
    `${url} answered something that is no JSON: name the address of a \`tenure serve\` process with --url`,
  )
}

function problemError(response: Response, body: unknown): CliError {
  const { status } = response
  const { code, detail } = (typeof body === 'object' && body !== null ? body : {}) as {
    readonly code?: unknown
    readonly detail?: unknown
  }
  if (typeof code !== 'string' || typeof detail !== 'string') {
    const message = `${new URL(response.url).origin} answered ${status}, without a problem document: is it a \`tenure serve\` process? Name one with --url`
    return new CliError('failed', exitCodeOf('', status), message)
  }
  const exitCode = exitCodeOf(code, status)
  const seconds = response.headers.get('retry-after')
  const again = status === 503 && seconds !== null ? ` (try again in ${seconds} s)` : ''
  const token = status === 401 ? ': set TENURE_HTTP_TOKEN or --token-file' : ''
  return new CliError(code, exitCode, `${detail}${again}${token}`)
}

function transportError(error: unknown, url: string, interrupted: AbortSignal): CliError {
  if (interrupted.aborted) return interruptedError()
  if (error instanceof Error && error.name === 'TimeoutError') {
    const message = `${url} did not answer in time: a change may have been made; look with \`tenure status\``
    return new CliError('timed-out', EXIT.timedOut, message)
  }
  return new CliError(
    'unreachable',
    EXIT.unreachable,
    `cannot reach ${url} (${faultOf(error)}): start \`tenure serve\`, or name one with --url or TENURE_URL`,
  )
}

/** The system's own code, such as ECONNREFUSED, which fetch hides one or two causes deep. */
function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && typeof error.code === 'string') return error.code
  if (error instanceof AggregateError && error.errors.length > 0) return faultOf(error.errors[0])
  return error.cause === undefined ? error.message : faultOf(error.cause)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
