/**
 * Connections to etcd, one at a time, moving to the next endpoint when one fails.
 *
 * The client library's own host choice is random per call, its fault policies retry writes and hold
 * back calls after a timeout, and it closes every channel of a host on each failed call. None of this
 * is wanted: here one client object speaks to one endpoint, with policies that do nothing, and this
 * file decides when to give it up. A connection that failed is retired at once, which also ends a
 * half-open one: calls that are under way on it go on to their deadlines, new calls use a new
 * connection. Failures of a connection that was retired before do not move the choice again.
 */
import {
  type CallOptions,
  type ChannelOptions,
  InterceptingCall,
  type Interceptor,
} from '@grpc/grpc-js'
import { type IPolicy, noop } from 'cockatiel'
import { Etcd3 } from 'etcd3'
import { EtcdChannel } from './channel.ts'
import type { Identity } from './etcd-options.ts'

/** Larger than any answer that is asked for: 10,000 records are about 6 MB. */
const RECEIVE_BYTES_MAX = 64 * 1024 * 1024
/** The server tolerates no ping more often than every 5 s. */
const KEEPALIVE_PING_MS = 6000
const KEEPALIVE_TIMEOUT_MS = 2000
const RECONNECT_BACKOFF_MS = 100
const RECONNECT_BACKOFF_MAX_MS = 1000
/** Bounds the exchange of name and password for a token, which precedes the first call. */
const AUTHENTICATE_TIMEOUT_MS = 2000

export type Connection = {
  readonly client: Etcd3
  readonly channel: EtcdChannel
  /** A connection's first watch tells a refusal from an expired token. */
  watchesOpened: number
}

export type Connections = {
  /** The connection to use now; null once closed. Opens nothing before the first call. */
  current(): Connection | null
  /** Gives the connection up and moves on to the next endpoint, if it is the current one. */
  retire(connection: Connection): void
  close(): void
}

export function createConnections(endpoints: readonly string[], identity: Identity): Connections {
  let index = 0
  let connection: Connection | null = null
  let closed = false
  return {
    current() {
      if (closed) return null
      connection ??= connectTo(endpoints[index % endpoints.length] ?? '', identity)
      return connection
    },
    retire(failed) {
      if (connection !== failed) return
      connection = null
      index = (index + 1) % endpoints.length
      end(failed)
    },
    close() {
      closed = true
      if (connection !== null) end(connection)
      connection = null
    },
  }
}

/**
 * Options of a call that a member without a leader must turn down, at once and before it proposes
 * anything, instead of letting it run into its timeout.
 */
export function requireLeader(options: CallOptions): CallOptions {
  return { ...options, interceptors: [addRequireLeader] }
}

const addRequireLeader: Interceptor = (options, next) =>
  new InterceptingCall(next(options), {
    start(metadata, listener, start) {
      metadata.set('hasleader', 'true')
      start(metadata, listener)
    },
  })

const CHANNEL_OPTIONS: ChannelOptions = {
  'grpc.keepalive_time_ms': KEEPALIVE_PING_MS,
  'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
  'grpc.max_receive_message_length': RECEIVE_BYTES_MAX,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': RECONNECT_BACKOFF_MS,
  'grpc.max_reconnect_backoff_ms': RECONNECT_BACKOFF_MAX_MS,
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
}

function connectTo(endpoint: string, identity: Identity): Connection {
  const { auth } = identity
  const options = { endpoint, identity, channelOptions: CHANNEL_OPTIONS }
  const fetchToken = auth === undefined ? null : () => authenticate(endpoint, identity, auth)
  return {
    client: createClient(endpoint, identity),
    channel: new EtcdChannel({ ...options, fetchToken }),
    watchesOpened: 0,
  }
}

function end({ client, channel }: Connection): void {
  client.close()
  channel.close()
}

/** By a client without a name: one that has a name would fetch a token of its own before it asks. */
async function authenticate(
  endpoint: string,
  { credentials }: Identity,
  { username, password }: NonNullable<Identity['auth']>,
): Promise<string> {
  const client = createClient(endpoint, credentials === undefined ? {} : { credentials })
  try {
    return (await client.auth.authenticate({ name: username, password })).token
  } finally {
    client.close()
  }
}

function createClient(endpoint: string, identity: Identity): Etcd3 {
  return new Etcd3({
    hosts: endpoint,
    ...identity,
    grpcOptions: CHANNEL_OPTIONS,
    faultHandling: { global: noop, host: () => hideFromLibrary },
    defaultCallOptions: (context) =>
      context.isStream ? {} : { deadline: Date.now() + AUTHENTICATE_TIMEOUT_MS },
  })
}

/**
 * Passes calls through and hides what kind of error they met, because the library closes a host's
 * channels, with the calls queued on them, on each error that it knows as recoverable.
 */
const hideFromLibrary: IPolicy = Object.assign(Object.create(noop) as IPolicy, {
  async execute<T>(run: Parameters<IPolicy['execute']>[0]): Promise<T> {
    try {
      return (await run({ signal: neverAborted })) as T
    } catch (error) {
      throw new HiddenError(error instanceof Error ? error.message : String(error))
    }
  },
})

const neverAborted = new AbortController().signal

class HiddenError extends Error {}
