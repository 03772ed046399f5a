/**
 * Asks a NATS server what it is: it greets each connection with one INFO line, before credentials and
 * TLS. So `doctor` needs neither, and tells a server that is down from one that refuses us.
 */
import { connect } from 'node:net'

export type NatsInfo =
  | { readonly ok: true; readonly version: string; readonly jetStream: boolean }
  | { readonly ok: false; readonly detail: string }

const GREETING_BYTES_MAX = 64 * 1024

/** `host:port`, `nats://host:port` or `tls://host:port`; never rejects. */
export function readNatsInfo(server: string, timeoutMs: number): Promise<NatsInfo> {
  const url = new URL(server.includes('://') ? server : `nats://${server}`)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(url.port || 4222) })
    let greeting = ''
    const finish = (info: NatsInfo) => {
      socket.destroy()
      resolve(info)
    }
    socket.setTimeout(timeoutMs, () => finish({ ok: false, detail: 'no greeting in time' }))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      finish({ ok: false, detail: error.code ?? error.message }),
    )
    socket.once('end', () => finish({ ok: false, detail: 'closed without a greeting' }))
    socket.on('data', (bytes) => {
      greeting += bytes.toString('utf8')
      if (greeting.includes('\r\n')) finish(parseGreeting(greeting))
      else if (greeting.length > GREETING_BYTES_MAX) finish(NOT_NATS)
    })
  })
}

const NOT_NATS: NatsInfo = { ok: false, detail: 'something other than NATS answers there' }

function parseGreeting(greeting: string): NatsInfo {
  const json = /^INFO (\{.*\}) *\r\n/.exec(greeting)?.[1]
  if (json === undefined) return NOT_NATS
  try {
    const { version, jetstream } = JSON.parse(json) as Readonly<Record<string, unknown>>
    return { ok: true, version: String(version), jetStream: jetstream === true }
  } catch {
    return NOT_NATS
  }
}
