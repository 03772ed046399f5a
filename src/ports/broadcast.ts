/**
 * The broadcast port: lossy publish/subscribe and request/reply, as core NATS gives it. A message may
 * be lost, never reordered within one publisher and subject. Nothing here authorises work.
 */
export type Message = {
  readonly subject: string
  readonly data: Uint8Array
  /** Answers a request; a no-op for a message that expects none. May be called several times. */
  respond(data: Uint8Array): void
}

export type Subscription = { close(): void }

export type BroadcastStatus = 'connected' | 'disconnected' | 'closed'

export interface Broadcast {
  /** False when the message was certainly dropped (no connection); true promises nothing. */
  publish(subject: string, data: Uint8Array): boolean
  /** `queue`: one member of the queue group gets each message. */
  subscribe(
    subject: string,
    handler: (message: Message) => void,
    options?: { readonly queue?: string },
  ): Subscription
  /**
   * Sends a request and hands each reply to `onReply` until that returns true (complete) or the
   * timeout passes. Resolves true when complete, false otherwise; never rejects.
   */
  request(
    subject: string,
    data: Uint8Array,
    options: { readonly timeoutMs: number },
    onReply: (data: Uint8Array) => boolean,
  ): Promise<boolean>
  /** Largest payload that one message may carry, in bytes. */
  maxPayloadBytes(): number
  status(): BroadcastStatus
  onStatus(listener: (status: BroadcastStatus) => void): Subscription
  close(): Promise<void>
}
