/**
 * etcd and nats-server as children of this process, on free loopback ports, for `tenure dev` and for
 * tests. See `servers-process.ts` for why none of them is ever left behind.
 *
 * Ready means that the server did its work once: a commit through consensus, a NATS connection that
 * was greeted and answered a ping; an open port alone says nothing.
 */
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createTenureError, isTenureError } from '../core/tenure-error.ts'
import { createEtcdStore } from '../etcd/etcd-store.ts'
import { findServerProgram } from './servers-binaries.ts'
import { findFreePorts, type ServerProcess, startServerProcess } from './servers-process.ts'

export { findServerProgram } from './servers-binaries.ts'
export type { ServerProcess } from './servers-process.ts'

export type EtcdServer = ServerProcess & {
  /** `http://127.0.0.1:port`, for clients. */
  readonly endpoint: string
  readonly clientPort: number
  readonly peerPort: number
}

export type EtcdServerOptions = {
  /** Holds data and log; made when missing. Data found there is used again. */
  readonly directory: string
  readonly binary?: string
  /** Fixed ports instead of free ones. */
  readonly clientPort?: number
  readonly peerPort?: number
  /** Skips flushing to disk: faster, and nothing survives a crash of the machine. */
  readonly unsafeNoFsync?: boolean
  readonly extraArgs?: readonly string[]
}

export type EtcdCluster = {
  readonly members: readonly EtcdServer[]
  readonly endpoints: readonly string[]
  stop(): Promise<void>
}

export type NatsServer = ServerProcess & {
  /** `nats://127.0.0.1:port`. */
  readonly url: string
  readonly port: number
}

export type NatsServerOptions = {
  /** Holds the streams and the log; made when missing. */
  readonly directory: string
  readonly binary?: string
  readonly port?: number
  readonly jetStream?: boolean
  readonly extraArgs?: readonly string[]
}

/** Between finding a port free and listening on it, another process may take it. */
const PORT_TRIES = 5
const PROBE_TIMEOUT_MS = 1000
/** A kept history long enough for any watch to catch up, and no longer. */
const COMPACTION = ['--auto-compaction-mode', 'periodic', '--auto-compaction-retention', '5m']

/** @throws TenureError `binary-missing`, `timed-out`, or `conflict` when etcd ends at start. */
export async function startEtcdServer(options: EtcdServerOptions): Promise<EtcdServer> {
  return retryTakenPorts(async () => {
    const [freeClientPort = 0, freePeerPort = 0] = await findFreePorts(2)
    const place = {
      name: 'etcd',
      clientPort: options.clientPort ?? freeClientPort,
      peerPort: options.peerPort ?? freePeerPort,
    }
    return startMember(options, place, [place])
  })
}

/**
 * Several etcd members as one cluster, each in its own folder under the directory.
 *
 * @throws TenureError as {@link startEtcdServer}; no member runs then.
 */
export async function startEtcdCluster(
  options: Omit<EtcdServerOptions, 'clientPort' | 'peerPort'> & { readonly size: number },
): Promise<EtcdCluster> {
  return retryTakenPorts(async () => {
    const ports = await findFreePorts(options.size * 2)
    const places = Array.from({ length: options.size }, (_, index) => ({
      name: `etcd-${index}`,
      clientPort: ports[index * 2] ?? 0,
      peerPort: ports[index * 2 + 1] ?? 0,
    }))
    const started = await Promise.allSettled(
      places.map((place) =>
        startMember({ ...options, directory: join(options.directory, place.name) }, place, places),
      ),
    )
    const members = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    // One after the other: a leader that ends hands over first, and would wait for members that end too.
    const stop = async () => {
      for (const member of members) await member.stop()
    }
    const failed = started.find((one) => one.status === 'rejected')
    if (failed !== undefined) {
      await stop()
      throw failed.reason
    }
    return { members, endpoints: members.map((member) => member.endpoint), stop }
  })
}

/** @throws TenureError `binary-missing`, `timed-out`, or `conflict` when nats-server ends at start. */
export async function startNatsServer(options: NatsServerOptions): Promise<NatsServer> {
  const program = findServerProgram('nats-server', options.binary)
  return retryTakenPorts(async () => {
    const [freePort = 0] = await findFreePorts(1)
    const port = options.port ?? freePort
    const jetStream = options.jetStream ?? false
    mkdirSync(options.directory, { recursive: true })
    const server = await startServerProcess({
      name: 'nats-server',
      program,
      args: [
        ...['-a', '127.0.0.1', '-p', String(port)],
        ...(jetStream ? ['-js', '-sd', join(options.directory, 'jetstream')] : []),
        ...(options.extraArgs ?? []),
      ],
      ports: [port],
      logFile: join(options.directory, 'nats-server.log'),
      isReady: () => natsAnswers(port, jetStream),
    })
    return { ...server, url: `nats://127.0.0.1:${port}`, port }
  })
}

type Place = { readonly name: string; readonly clientPort: number; readonly peerPort: number }

async function startMember(
  options: EtcdServerOptions,
  place: Place,
  places: readonly Place[],
): Promise<EtcdServer> {
  const program = findServerProgram('etcd', options.binary)
  const endpoint = `http://127.0.0.1:${place.clientPort}`
  const peerUrl = (one: Place) => `http://127.0.0.1:${one.peerPort}`
  mkdirSync(options.directory, { recursive: true })
  const server = await startServerProcess({
    name: place.name,
    program,
    args: [
      ...['--name', place.name, '--data-dir', join(options.directory, 'data')],
      ...['--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
      ...['--listen-peer-urls', peerUrl(place), '--initial-advertise-peer-urls', peerUrl(place)],
      '--initial-cluster',
      places.map((one) => `${one.name}=${peerUrl(one)}`).join(','),
      ...['--initial-cluster-state', 'new', '--logger', 'zap', '--log-level', 'warn'],
      ...COMPACTION,
      ...(options.unsafeNoFsync === true ? ['--unsafe-no-fsync'] : []),
      ...(options.extraArgs ?? []),
    ],
    environment: withoutEtcdSettings(process.env),
    ports: [place.clientPort, place.peerPort],
    logFile: join(options.directory, 'etcd.log'),
    isReady: () => etcdCommits(endpoint),
  })
  return { ...server, endpoint, clientPort: place.clientPort, peerPort: place.peerPort }
}

/** `ETCD_*` variables of the surroundings would set flags of the server that we start. */
function withoutEtcdSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(environment).filter(([name]) => !name.startsWith('ETCD_'))
  // Older etcd wants to be told that it may run on this processor.
  return { ...Object.fromEntries(kept), ETCD_UNSUPPORTED_ARCH: process.arch }
}

/** Deletes a key that is never there: that passes through consensus and leaves no trace. */
async function etcdCommits(endpoint: string): Promise<boolean> {
  const store = createEtcdStore({ endpoints: [endpoint] })
  try {
    const reply = await store.transact(
      { compare: [], success: [{ type: 'delete', key: '/tenure/ready' }], failure: [] },
      { timeoutMs: PROBE_TIMEOUT_MS },
    )
    // A refusal (a password is wanted, no space is left) is an answer that went the whole way too.
    return reply.ok || reply.reason === 'refused'
  } finally {
    await store.close()
  }
}

async function natsAnswers(port: number, jetStream: boolean): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error('no answer')))
  let received = ''
  try {
    await once(socket, 'connect')
    socket.write('CONNECT {"verbose":false,"pedantic":false}\r\nPING\r\n')
    for await (const chunk of socket) {
      received += String(chunk)
      if (received.includes('\r\nPONG')) break
    }
  } catch {
    return false
  } finally {
    socket.destroy()
  }
  return received.includes('PONG') && (!jetStream || received.includes('"jetstream":true'))
}

async function retryTakenPorts<T>(start: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await start()
    } catch (error) {
      const taken =
        isTenureError(error, 'conflict') && error.message.includes('address already in use')
      if (!taken) throw error
      if (tries === PORT_TRIES) {
        throw createTenureError('conflict', 'no free port could be had', { cause: error })
      }
    }
  }
}
