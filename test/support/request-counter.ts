/**
 * A proxy that understands gRPC well enough to count what clients ask of etcd, and to lose the reply
 * to one request after the server has carried it out.
 *
 * A request is one gRPC message from the client: a unary call counts one, a stream one for each message
 * that the client sends on it.
 */
import { once } from 'node:events'
import {
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { CleanUp } from './servers.ts'

export type RequestCounter = {
  /** `http://127.0.0.1:port` */
  readonly endpoint: string
  readonly port: number
  /** Requests since the start or the last reset; of one method, such as `KV/Txn`, or of all. */
  count(method?: string): number
  /** Counts per method (`KV/Txn`, `Lease/LeaseKeepAlive`, ...), most frequent first. */
  byMethod(): Readonly<Record<string, number>>
  reset(): void
  /**
   * Cuts the connection instead of answering the next such call, or the next whose request contains the
   * text; resolves when that was done.
   */
  loseNextReply(method: string, containing?: string): Promise<void>
  close(): Promise<void>
}

const PATH_PREFIX = '/etcdserverpb.'
/** One byte of flags, four of length, before each gRPC message. */
const MESSAGE_HEAD_BYTES = 5
/** So much of a request is looked through. */
const SEARCHED_BYTES_MAX = 256 * 1024

type Losing = { readonly method: string; readonly containing: string; readonly lost: () => void }

export async function startRequestCounter(
  cleanUp: CleanUp,
  targetPort: number,
): Promise<RequestCounter> {
  const counts = new Map<string, number>()
  const sessions = new Set<ServerHttp2Session>()
  let losing: Losing | null = null

  const takeLoss = (method: string, body: () => Buffer): Losing | null => {
    if (losing?.method !== method || !body().includes(losing.containing)) return null
    const taken = losing
    losing = null
    return taken
  }
  const server = createServer()
  server.on('session', (session) => {
    const upstream = connect(`http://127.0.0.1:${targetPort}`)
    sessions.add(session)
    upstream.on('error', () => session.destroy())
    upstream.on('close', () => session.destroy())
    session.on('error', () => upstream.destroy())
    session.on('close', () => {
      sessions.delete(session)
      upstream.destroy()
    })
    session.on('stream', (stream, headers) => {
      const method = String(headers[':path']).replace(PATH_PREFIX, '')
      const request = upstream.request(forwarded(headers), { endStream: false })
      countMessages(stream, () => counts.set(method, (counts.get(method) ?? 0) + 1))
      const body = keepBeginning(stream)
      relay(stream, request, () => takeLoss(method, body))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')

  const close = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    for (const session of sessions) session.destroy()
    await closed
  }
  cleanUp.after(close)
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    port: address.port,
    count(method) {
      if (method !== undefined) return counts.get(method) ?? 0
      return [...counts.values()].reduce((sum, one) => sum + one, 0)
    },
    byMethod: () => Object.fromEntries([...counts].sort(([, a], [, b]) => b - a)),
    reset: () => counts.clear(),
    loseNextReply: (method, containing = '') =>
      new Promise((resolve) => {
        losing = { method, containing, lost: resolve }
      }),
    close,
  }
}

/** @param takeLoss asked when the server begins to answer: not null when that answer is to be lost */
function relay(
  stream: ServerHttp2Stream,
  request: ClientHttp2Stream,
  takeLoss: () => Losing | null,
): void {
  let trailers: IncomingHttpHeaders = {}
  let loss: Losing | null = null
  // The first message of an answer, or its end, shows that the request was carried out.
  const loseNow = (lost: Losing) => {
    stream.session?.destroy()
    lost.lost()
  }
  stream.on('error', () => request.close(constants.NGHTTP2_CANCEL))
  stream.on('aborted', () => request.close(constants.NGHTTP2_CANCEL))
  stream.on('wantTrailers', () => stream.sendTrailers(forwarded(trailers)))
  stream.pipe(request)

  request.on('error', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR))
  request.on('response', (headers, flags) => {
    loss = takeLoss()
    if (loss !== null || stream.destroyed) return
    const isWholeAnswer = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    if (isWholeAnswer) stream.respond(forwarded(headers), { endStream: true })
    else stream.respond(forwarded(headers), { waitForTrailers: true })
  })
  request.on('trailers', (received) => {
    trailers = received
  })
  request.on('data', (chunk: Buffer) => {
    if (loss !== null) loseNow(loss)
    else if (!stream.destroyed) stream.write(chunk)
  })
  request.on('end', () => {
    if (loss !== null) loseNow(loss)
    else if (!stream.destroyed && stream.headersSent) stream.end()
  })
  request.on('close', () => {
    if (request.rstCode !== 0) stream.close(request.rstCode)
  })
}

function keepBeginning(stream: ServerHttp2Stream): () => Buffer {
  const chunks: Buffer[] = []
  let left = SEARCHED_BYTES_MAX
  stream.on('data', (chunk: Buffer) => {
    if (left <= 0) return
    chunks.push(chunk)
    left -= chunk.length
  })
  return () => Buffer.concat(chunks)
}

function forwarded(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) kept[name] = value
  }
  return kept
}

function countMessages(stream: ServerHttp2Stream, count: () => void): void {
  let head = Buffer.alloc(0)
  let bodyLeft = 0
  stream.on('data', (chunk: Buffer) => {
    let rest = chunk
    while (rest.length > 0) {
      if (bodyLeft > 0) {
        const skipped = Math.min(bodyLeft, rest.length)
        bodyLeft -= skipped
        rest = rest.subarray(skipped)
        continue
      }
      const wanted = MESSAGE_HEAD_BYTES - head.length
      head = Buffer.concat([head, rest.subarray(0, wanted)])
      rest = rest.subarray(wanted)
      if (head.length < MESSAGE_HEAD_BYTES) return
      bodyLeft = head.readUInt32BE(1)
      head = Buffer.alloc(0)
      count()
    }
  })
}
