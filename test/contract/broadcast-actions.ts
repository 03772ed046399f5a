/** Short forms of the broadcast port's calls for the contract suite. */
import type { Broadcast, Message } from '../../src/ports/broadcast.ts'
import type { BroadcastWorld } from './world.ts'

export function bytes(message: string): Uint8Array {
  return new TextEncoder().encode(message)
}

export function text(data: Uint8Array): string {
  return new TextDecoder().decode(data)
}

export type MessageLog = {
  readonly messages: readonly Message[]
  texts(): string[]
  close(): void
}

const PROBE = 'is anybody there?'

/** Four clients, each with a connection of its own. */
export async function connectAll(
  world: BroadcastWorld,
): Promise<readonly [Broadcast, Broadcast, Broadcast, Broadcast]> {
  const { connect } = world
  return Promise.all([connect(), connect(), connect(), connect()])
}

/** Subscribes and keeps what arrives, probes apart. */
export function collect(to: Broadcast, subject: string, queue?: string): MessageLog {
  return listen(to, subject, queue).log
}

/** Subscribes and waits until the subscription stands, seen from the publisher. */
export async function subscribed(
  world: BroadcastWorld,
  from: Broadcast,
  to: Broadcast,
  subject: string,
  queue?: string,
): Promise<MessageLog> {
  const { log, probes } = listen(to, subject, queue)
  await world.eventually('the subscription stands', () => {
    from.publish(subject, bytes(PROBE))
    return probes() > 0
  })
  return log
}

function listen(to: Broadcast, subject: string, queue: string | undefined) {
  const messages: Message[] = []
  let probes = 0
  const subscription = to.subscribe(
    subject,
    (message) => {
      if (text(message.data) === PROBE) probes += 1
      else messages.push(message)
    },
    queue === undefined ? {} : { queue },
  )
  const log: MessageLog = {
    messages,
    texts: () => messages.map((message) => text(message.data)),
    close: () => subscription.close(),
  }
  return { log, probes: () => probes }
}
