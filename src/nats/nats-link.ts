/**
 * One connection to NATS that outlives every server: the only place that dials.
 *
 *   dialling ──connected──▶ connected ──lost──▶ disconnected ──┐
 *      ▲                        ▲                              │ the client dials again by itself
 *      │                        └──────────────────────────────┘
 *      └── the client gave its connection up (it does after some refusals): a new one is dialled
 *   any ──close──▶ closed
 *
 * Failure cases. No server at the start: creation succeeds, the status is `disconnected`, and dialling
 * goes on with a capped, jittered delay; ownership does not need NATS. A half-open connection shows
 * after two pings of 5 s. Refused credentials are tried again for ever (an operator may mend them) and
 * `lastError` names them.
 *
 * Not promised: delivery. What is published while the link is down is gone.
 */
import { readFileSync } from 'node:fs'
import type { ConnectionOptions, NatsConnection } from 'nats'
import { connect, credsAuthenticator, Events } from 'nats'
import { createTenureError } from '../core/tenure-error.ts'
import type { BroadcastStatus, Subscription } from '../ports/broadcast.ts'

export type NatsOptions = {
  /** `host:port` or `nats://` URLs; tried in random order. */
  readonly servers: readonly string[]
  /** Shown by the server's monitoring. */
  readonly name?: string
  readonly user?: string
  readonly password?: string
  readonly token?: string
  /** File with a user JWT and its key. */
  readonly credsFile?: string
  /** PEM files; an empty object asks for TLS with the system's authorities. */
  readonly tls?: { readonly caFile?: string; readonly certFile?: string; readonly keyFile?: string }
}

export interface NatsLink {
  status(): BroadcastStatus
  onStatus(listener: (status: BroadcastStatus) => void): Subscription
  /** The client's connection while the link is connected, else null. */
  connection(): NatsConnection | null
  /** The client's connection whatever its state; null before the first. */
  anyConnection(): NatsConnection | null
  /** Calls back with each new client connection, which knows no subscription yet. */
  onConnection(listener: (connection: NatsConnection) => void): void
  /** Why the link is down, in the client's words; null when nothing failed yet. */
  lastError(): string | null
  /** Resolves true once connected, false when the time passes or the link closes first. */
  waitConnected(timeoutMs: number): Promise<boolean>
  close(): Promise<void>
}

const DIAL_TIMEOUT_MS = 2000
const REDIAL_MS = 250
const REDIAL_JITTER_MS = 250
const PING_INTERVAL_MS = 5000
const PINGS_OUT_MAX = 2

/** @throws TenureError `invalid-config` for a credentials file that cannot be read. */
export function openNatsLink(options: NatsOptions): NatsLink {
  const link = new Link(connectionOptions(options))
  link.dial()
  return link
}

class Link implements NatsLink {
  private readonly options: ConnectionOptions
  private readonly statusListeners = new Set<(status: BroadcastStatus) => void>()
  private readonly connectionListeners: ((connection: NatsConnection) => void)[] = []
  private current: BroadcastStatus = 'disconnected'
  private client: NatsConnection | null = null
  private redial: NodeJS.Timeout | null = null
  private dialling: Promise<void> | null = null
  private failure: string | null = null

  constructor(options: ConnectionOptions) {
    this.options = options
  }

  status(): BroadcastStatus {
    return this.current
  }

  onStatus(listener: (status: BroadcastStatus) => void): Subscription {
    this.statusListeners.add(listener)
    return { close: () => void this.statusListeners.delete(listener) }
  }

  connection(): NatsConnection | null {
    return this.current === 'connected' ? this.client : null
  }

  anyConnection(): NatsConnection | null {
    return this.client
  }

  onConnection(listener: (connection: NatsConnection) => void): void {
    this.connectionListeners.push(listener)
    if (this.client !== null) listener(this.client)
  }

  lastError(): string | null {
    return this.failure
  }

  waitConnected(timeoutMs: number): Promise<boolean> {
    if (this.current !== 'disconnected') return Promise.resolve(this.current === 'connected')
    return new Promise((resolve) => {
      const settle = (connected: boolean) => {
        clearTimeout(timer)
        listening.close()
        resolve(connected)
      }
      const timer = setTimeout(() => settle(false), timeoutMs)
      const listening = this.onStatus((status) => settle(status === 'connected'))
    })
  }

  async close(): Promise<void> {
    if (this.current === 'closed') return
    if (this.redial !== null) clearTimeout(this.redial)
    const client = this.client
    const flush = this.current === 'connected'
    this.become('closed')
    this.statusListeners.clear()
    await this.dialling
    if (client === null) return
    // Messages written in this turn leave with the flush; a server that hangs must not hold the end.
    if (flush) await withinMs(client.flush(), DIAL_TIMEOUT_MS)
    await client.close()
  }

  dial(): void {
    this.redial = null
    this.dialling = connect(this.options)
      .then((client) => this.adopt(client))
      .catch((error: unknown) => {
        this.failure = describe(error)
        this.dialLater()
      })
  }

  private dialLater(): void {
    if (this.current === 'closed') return
    this.redial = setTimeout(() => this.dial(), redialDelayMs())
  }

  private async adopt(client: NatsConnection): Promise<void> {
    if (this.current === 'closed') return client.close()
    this.client = client
    for (const listener of this.connectionListeners) listener(client)
    void this.follow(client)
    this.become('connected')
  }

  /** Follows one client connection to its end, then dials a new one. */
  private async follow(client: NatsConnection): Promise<void> {
    const ended = client.closed().then((error) => {
      if (error) this.failure = describe(error)
    })
    for await (const status of client.status()) {
      if (this.current === 'closed') break
      if (status.type === Events.Disconnect) this.become('disconnected')
      else if (status.type === Events.Reconnect) this.become('connected')
      else if (status.type === Events.Error) this.failure = String(status.data)
    }
    await ended
    if (this.current === 'closed') return
    this.become('disconnected')
    this.dialLater()
  }

  private become(status: BroadcastStatus): void {
    if (this.current === status) return
    this.current = status
    if (status === 'connected') this.failure = null
    for (const listener of [...this.statusListeners]) listener(status)
  }
}

function connectionOptions(options: NatsOptions): ConnectionOptions {
  const { name, user, password, token, credsFile, tls } = options
  return {
    servers: [...options.servers],
    timeout: DIAL_TIMEOUT_MS,
    maxReconnectAttempts: -1,
    reconnectDelayHandler: redialDelayMs,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: PINGS_OUT_MAX,
    ignoreAuthErrorAbort: true,
    ...(name === undefined ? {} : { name }),
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { pass: password }),
    ...(token === undefined ? {} : { token }),
    ...(credsFile === undefined ? {} : { authenticator: credsAuthenticator(readCreds(credsFile)) }),
    ...(tls === undefined ? {} : { tls: { ...tls } }),
  }
}

function readCreds(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw createTenureError('invalid-config', `NATS credentials file ${file} cannot be read`, {
      cause,
      details: { setting: 'nats.credsFile' },
    })
  }
}

/** Short, so that observers are whole again soon after a restart; spread, so that they don't come at once. */
function redialDelayMs(): number {
  return REDIAL_MS + Math.floor(Math.random() * REDIAL_JITTER_MS)
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function withinMs(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise((resolve) => {
    timer = setTimeout(resolve, timeoutMs)
  })
  await Promise.race([work.catch(() => undefined), timeout])
  clearTimeout(timer)
}
