/**
 * Stands between one worker and the etcd members, in the worker's namespace: `proxy-program.ts <targets as
 * JSON>`. Says its ports to its parent, does what that tells it, and ends with it.
 */
import { startTcpProxy } from '../support/tcp-proxy.ts'

export type ProxyTarget = { readonly host: string; readonly port: number }
export type ProxyReady = { readonly ports: readonly number[] }
export type ProxyOrder =
  | { readonly type: 'delay'; readonly delayMs: number }
  | { readonly type: 'half-open' }
  | { readonly type: 'black-hole'; readonly on: boolean }

const targets = JSON.parse(process.argv[2] ?? '[]') as readonly ProxyTarget[]
const proxies = await Promise.all(
  targets.map(({ host, port }) => startTcpProxy({ after: () => {} }, port, host)),
)
process.on('disconnect', () => process.exit(0))
// Ctrl-C at a terminal is for the harness alone, which ends this process by leaving.
process.on('SIGINT', () => {})
process.on('message', (order: ProxyOrder) => {
  for (const proxy of proxies) {
    if (order.type === 'delay') proxy.delay(order.delayMs)
    else if (order.type === 'half-open') proxy.stallStanding()
    else if (order.on) proxy.pause()
    else proxy.resume()
  }
})
process.send?.({ ports: proxies.map(({ port }) => port) } satisfies ProxyReady)
