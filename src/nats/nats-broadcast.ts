/**
 * The broadcast port on core NATS.
 *
 * Subscriptions belong to this adapter, not to a client connection: the client restores them when it
 * reconnects, and a new client connection gets them all again. They stand at the server before the
 * status turns `connected`, so who asks for a snapshot then has its deltas running already.
 *
 * A handler that throws is a bug: it is thrown again outside the client's read loop, which would
 * otherwise end silently.
 */
import type { Msg, NatsConnection, Subscription as NatsSubscription } from 'nats'
import { createInbox } from 'nats'
import type { Broadcast, BroadcastStatus, Message, Subscription } from '../ports/broadcast.ts'
import type { NatsLink, NatsOptions } from './nats-link.ts'
import { openNatsLink } from './nats-link.ts'

/** The server's default, assumed until a server said otherwise. */
const MAX_PAYLOAD_BYTES = 1_048_576
const FIRST_CONNECT_WAIT_MS = 2000
const NO_RESPONDERS = 503

type Wanted = {
  readonly subject: string
  readonly queue: string | undefined
  readonly handler: (message: Msg) => void
  current: NatsSubscription | null
}

/**
 * Opens a link of its own, closed with the broadcast. Resolves once connected, or after 2 s without a
 * connection (dialling goes on in the background); an unreachable server is no failure.
 * @throws TenureError `invalid-config` for a credentials file that cannot be read.
 */
export async function createNatsBroadcast(options: NatsOptions): Promise<Broadcast> {
  const link = openNatsLink(options)
  const broadcast = broadcastOver(link)
  await link.waitConnected(FIRST_CONNECT_WAIT_MS)
  return { ...broadcast, close: () => link.close() }
}

/** A broadcast on a link that others may share; closing it ends its subscriptions, not the link. */
export function broadcastOver(link: NatsLink): Broadcast {
  const wanted = new Set<Wanted>()
  let closed = false
  const status = (): BroadcastStatus => (closed ? 'closed' : link.status())
  const attach = (connection: NatsConnection, subscription: Wanted) => {
    if (connection.isClosed()) return
    const { subject, queue, handler } = subscription
    subscription.current = connection.subscribe(subject, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error, message) => {
        if (error === null) callSafely(() => handler(message))
      },
    })
  }
  const listen = (subject: string, queue: string | undefined, handler: Wanted['handler']) => {
    const subscription: Wanted = { subject, queue, handler, current: null }
    if (closed) return { close: () => undefined }
    wanted.add(subscription)
    const connection = link.anyConnection()
    if (connection !== null) attach(connection, subscription)
    return {
      close: () => {
        wanted.delete(subscription)
        subscription.current?.unsubscribe()
      },
    }
  }
  link.onConnection((connection) => {
    for (const subscription of wanted) attach(connection, subscription)
  })

  const maxPayloadBytes = () => link.anyConnection()?.info?.max_payload ?? MAX_PAYLOAD_BYTES
  const publish = (subject: string, data: Uint8Array, reply?: string): boolean => {
    const connection = closed ? null : link.connection()
    if (connection === null || connection.isClosed()) return false
    // The client would throw; a message too large is certainly dropped.
    if (data.byteLength > maxPayloadBytes()) return false
    connection.publish(subject, data, reply === undefined ? {} : { reply })
    return true
  }

  return {
    publish: (subject, data) => publish(subject, data),
    subscribe(subject, handler, options): Subscription {
      return listen(subject, options?.queue, (message) => handler(asMessage(message, publish)))
    },
    request(subject, data, { timeoutMs }, onReply) {
      return new Promise((resolve) => {
        const settle = (complete: boolean) => {
          clearTimeout(timer)
          replies.close()
          losses.close()
          resolve(complete)
        }
        const timer = setTimeout(() => settle(false), timeoutMs)
        const inbox = createInbox()
        const replies = listen(inbox, undefined, (message) => {
          if (message.data.length === 0 && message.headers?.code === NO_RESPONDERS) settle(false)
          else if (onReply(message.data)) settle(true)
        })
        // Replies that were under way are lost with the connection, so there is nothing to wait for.
        const losses = link.onStatus(() => settle(false))
        if (!publish(subject, data, inbox)) settle(false)
      })
    },
    maxPayloadBytes,
    status,
    onStatus: (listener) => link.onStatus(listener),
    async close() {
      closed = true
      for (const subscription of wanted) subscription.current?.unsubscribe()
      wanted.clear()
    },
  }
}

function asMessage(message: Msg, publish: (subject: string, data: Uint8Array) => boolean): Message {
  return {
    subject: message.subject,
    data: message.data,
    respond: (data) => {
      if (message.reply) publish(message.reply, data)
    },
  }
}

function callSafely(call: () => void): void {
  try {
    call()
  } catch (error: unknown) {
    queueMicrotask(() => {
      throw error
    })
  }
}
