/**
 * A TCP proxy on the loopback interface that misbehaves on request: it stalls, delays, cuts, refuses,
 * and swallows bytes. It knows nothing of what it carries.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { CleanUp } from './servers.ts'

export type Direction = 'to-server' | 'to-client'

export type TcpProxy = {
  readonly port: number
  /** `http://127.0.0.1:port` */
  readonly endpoint: string
  /** Connections that stand. */
  connections(): number
  /** Stops forwarding, on standing connections and on new ones: a black hole. */
  pause(direction?: Direction): void
  /** Forwards again, what was held back included; also ends `stallStanding`. */
  resume(direction?: Direction): void
  /** Standing connections fall silent, new ones work: what a half-open connection looks like. */
  stallStanding(): void
  /** Holds each chunk back for so long, in both directions; 0 ends it. */
  delay(delayMs: number): void
  /** Breaks every standing connection. */
  cutAll(): void
  /** Forwards so many more bytes in the direction, then breaks the connection that carried the last. */
  cutAfter(bytes: number, direction: Direction): Promise<void>
  /** Swallows the next so many bytes that the server sends, then breaks that connection. */
  swallowThenCut(bytes: number): Promise<void>
  /** New connections are refused by the system, as when nothing listens. Standing ones are cut. */
  refuse(): Promise<void>
  /** Ends `refuse`. */
  accept(): Promise<void>
  close(): Promise<void>
}

type Limit = {
  readonly direction: Direction
  readonly swallow: boolean
  left: number
  readonly reached: () => void
}

type Link = { cut(): void; stall(): void; applyPauses(): void }

export async function startTcpProxy(
  cleanUp: CleanUp,
  targetPort: number,
  targetHost = '127.0.0.1',
): Promise<TcpProxy> {
  const links = new Set<Link>()
  const paused = new Set<Direction>()
  const settings = { delayMs: 0 }
  let limit: Limit | null = null

  const server = createServer((client) => {
    const target = connect({ host: targetHost, port: targetPort })
    const link = createLink(client, target, { paused, settings, limit: () => limit, clearLimit })
    links.add(link)
    client.once('close', () => links.delete(link))
  })
  function clearLimit() {
    limit = null
  }
  const arm = (direction: Direction, swallow: boolean, bytes: number) =>
    new Promise<void>((resolve) => {
      limit = { direction, swallow, left: bytes, reached: resolve }
    })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const cutAll = () => {
    for (const link of [...links]) link.cut()
  }
  const refuse = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    cutAll()
    await closed
  }
  const change = (direction: Direction | undefined, act: (one: Direction) => void) => {
    const both: readonly Direction[] = ['to-server', 'to-client']
    for (const one of direction === undefined ? both : [direction]) act(one)
    for (const link of links) link.applyPauses()
  }

  await listen(0)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  const { port } = address
  cleanUp.after(refuse)
  return {
    port,
    endpoint: `http://127.0.0.1:${port}`,
    connections: () => links.size,
    pause: (direction) => change(direction, (one) => paused.add(one)),
    resume: (direction) => change(direction, (one) => paused.delete(one)),
    stallStanding() {
      for (const link of links) link.stall()
    },
    delay(delayMs) {
      settings.delayMs = delayMs
    },
    cutAll,
    cutAfter: (bytes, direction) => arm(direction, false, bytes),
    swallowThenCut: (bytes) => arm('to-client', true, bytes),
    refuse,
    accept: () => listen(port),
    close: refuse,
  }
}

type Shared = {
  readonly paused: ReadonlySet<Direction>
  readonly settings: { readonly delayMs: number }
  readonly limit: () => Limit | null
  readonly clearLimit: () => void
}

function createLink(client: Socket, target: Socket, shared: Shared): Link {
  const cut = () => {
    client.destroy()
    target.destroy()
  }
  for (const socket of [client, target]) {
    socket.setNoDelay(true)
    socket.on('error', cut)
    socket.on('close', cut)
  }
  forward(client, target, 'to-server', shared, cut)
  forward(target, client, 'to-client', shared, cut)
  const applyPauses = () => {
    if (shared.paused.has('to-server')) client.pause()
    else client.resume()
    if (shared.paused.has('to-client')) target.pause()
    else target.resume()
  }
  applyPauses()
  return {
    cut,
    applyPauses,
    stall() {
      client.pause()
      target.pause()
    },
  }
}

function forward(
  from: Socket,
  to: Socket,
  direction: Direction,
  shared: Shared,
  cut: () => void,
): void {
  let pending = Promise.resolve()
  let held = 0
  const send = (chunk: Buffer) => {
    if (!to.destroyed) to.write(chunk)
  }
  from.on('data', (received: Buffer) => {
    const chunk = applyLimit(received, direction, shared, cut)
    if (chunk.length === 0) return
    if (shared.settings.delayMs === 0 && held === 0) {
      send(chunk)
      return
    }
    const due = performance.now() + shared.settings.delayMs
    held += 1
    pending = pending.then(async () => {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
      held -= 1
      send(chunk)
    })
  })
  from.on('end', () => {
    pending.then(() => to.end(), cut)
  })
}

/** What of the chunk may pass; ends the connection once the armed limit is used up. */
function applyLimit(chunk: Buffer, direction: Direction, shared: Shared, cut: () => void): Buffer {
  const limit = shared.limit()
  if (limit === null || limit.direction !== direction) return chunk
  const counted = chunk.subarray(0, limit.left)
  limit.left -= counted.length
  if (limit.left === 0) {
    shared.clearLimit()
    // What was written before is sent first.
    setImmediate(() => {
      cut()
      limit.reached()
    })
  }
  return limit.swallow ? chunk.subarray(0, 0) : counted
}
