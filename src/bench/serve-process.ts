/** A `tenure serve` of the benchmark, as users run it: the rebalancer and the HTTP interface. */
import { startTenure } from '../dev/children.ts'
import { findFreePorts } from '../dev/servers-process.ts'
import type { BenchContext, BenchServers } from './bench-types.ts'

export type ServeProcess = {
  /** Of the group. */
  readonly url: string
  readonly port: number
  /** @throws unless the answer is 2xx. */
  call(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object): Promise<unknown>
  stop(): Promise<void>
}

const CALL_TIMEOUT_MS = 30_000
const READY_TIMEOUT_MS = 60_000

/** What a case that broke off has left behind. */
const running = new Set<() => Promise<void>>()

export async function stopServeProcesses(): Promise<void> {
  await Promise.all([...running].map((stop) => stop()))
}

/** The group must stand already: who comes first decides on its settings. */
export async function startServeProcess(
  { servers, folder }: BenchContext,
  group: string,
): Promise<ServeProcess> {
  const [port = 0] = await findFreePorts(1)
  const base = `http://127.0.0.1:${port}`
  const url = `${base}/v1/groups/${group}`
  const words = ['serve', '--group', group, '--port', String(port), '--log-level', 'warn']
  const server = await startTenure(words, {
    ...{ name: `serve-${group}`, logFolder: folder, ports: [port] },
    environment: environmentOf(servers),
    readyTimeoutMs: READY_TIMEOUT_MS,
    isReady: async () => {
      try {
        return (await fetch(`${base}/readyz`)).ok
      } catch {
        return false
      }
    },
  })
  const stop = async () => {
    running.delete(stop)
    await server.stop()
  }
  running.add(stop)
  return {
    url,
    port,
    stop,
    async call(method, path, body) {
      const reply = await fetch(`${url}${path}`, {
        method,
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
        ...(body === undefined
          ? {}
          : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      })
      const text = await reply.text()
      if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`)
      return text === '' ? null : JSON.parse(text)
    },
  }
}

/** The same servers and credentials as everybody else's in this run. */
function environmentOf({ etcd, nats }: BenchServers): NodeJS.ProcessEnv {
  const all: Readonly<Record<string, string | undefined>> = {
    TENURE_ETCD_ENDPOINTS: etcd.endpoints.join(','),
    TENURE_ETCD_TLS_CA: etcd.tls?.caFile,
    TENURE_ETCD_TLS_CERT: etcd.tls?.certFile,
    TENURE_ETCD_TLS_KEY: etcd.tls?.keyFile,
    TENURE_ETCD_USERNAME: etcd.username,
    TENURE_ETCD_PASSWORD: etcd.password,
    TENURE_NATS_SERVERS: nats.servers.join(','),
    TENURE_NATS_TLS_CA: nats.tls?.caFile,
    TENURE_NATS_TLS_CERT: nats.tls?.certFile,
    TENURE_NATS_TLS_KEY: nats.tls?.keyFile,
    TENURE_NATS_USER: nats.user,
    TENURE_NATS_PASSWORD: nats.password,
    TENURE_NATS_TOKEN: nats.token,
    TENURE_NATS_CREDS_FILE: nats.credsFile,
  }
  const set = Object.entries(all).filter(([, value]) => value !== undefined)
  return Object.fromEntries(set) as NodeJS.ProcessEnv
}
