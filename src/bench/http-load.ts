/**
 * HTTP requests over kept connections, one at a time on each: a client that does next to nothing, so
 * that two servers are compared and not two clients.
 */
import { connect } from 'node:net'

export type HttpLoadArgument = {
  readonly port: number
  /** Asked for in turn. */
  readonly paths: readonly string[]
  readonly connections: number
  readonly forMs: number
}

export type HttpLoadFigures = {
  readonly requestsPerSecond: number
  readonly latenciesMs: readonly number[]
}

/** Of so many latencies only each one in so many is kept. */
const KEPT_EVERY = 10

export async function loadHttp(argument: HttpLoadArgument): Promise<HttpLoadFigures> {
  const { port, paths, connections, forMs } = argument
  const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
  const beganMs = performance.now()
  const untilMs = beganMs + forMs
  const latenciesMs: number[] = []
  let answered = 0
  const one = (first: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port })
      let next = first
      let sentMs = 0
      let missing = 0
      const ask = () => {
        missing = 0
        sentMs = performance.now()
        socket.write(requests[next++ % requests.length] ?? '')
      }
      socket.setNoDelay(true)
      socket.on('connect', ask)
      socket.on('error', reject)
      socket.on('data', (chunk: Buffer) => {
        missing = missing === 0 ? lengthOf(chunk) - chunk.length : missing - chunk.length
        if (missing > 0) return
        answered += 1
        const nowMs = performance.now()
        if (answered % KEPT_EVERY === 0) latenciesMs.push(nowMs - sentMs)
        if (nowMs < untilMs) ask()
        else {
          socket.end()
          resolve()
        }
      })
    })
  await Promise.all(Array.from({ length: connections }, (_, index) => one(index * 7)))
  return { requestsPerSecond: (answered / (performance.now() - beganMs)) * 1000, latenciesMs }
}

/** Bytes of the whole answer. @throws unless it is 200 and its head came in one piece. */
function lengthOf(chunk: Buffer): number {
  const head = chunk.toString('latin1', 0, 1024)
  const end = head.indexOf('\r\n\r\n')
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (!head.startsWith('HTTP/1.1 200') || end < 0 || length === undefined) {
    throw new Error(`unexpected answer: ${head.slice(0, 200)}`)
  }
  return end + 4 + Number(length)
}
