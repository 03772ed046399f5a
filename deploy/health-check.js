// Asks the process in this container how it is, as containers without an HTTP client do:
//
//   node deploy/health-check.js /livez      the event loop turns
//   node deploy/health-check.js /readyz     send it work
//
// Exit code 0 for a 2xx reply, else 1. A worker listens where TENURE_HEALTH_PORT says, `serve` where
// TENURE_HTTP_PORT says; who listens on every address is asked on loopback.
import { get } from 'node:http'

const TIMEOUT_MS = 2000
const PORT_OF_SERVE = 7300

const path = process.argv[2] ?? '/livez'
const port = process.env.TENURE_HEALTH_PORT || process.env.TENURE_HTTP_PORT || PORT_OF_SERVE

const request = get({ host: '127.0.0.1', port, path, timeout: TIMEOUT_MS }, (reply) => {
  reply.resume()
  const healthy = reply.statusCode >= 200 && reply.statusCode < 300
  if (!healthy) console.error(`${path} on port ${port}: ${reply.statusCode}`)
  process.exitCode = healthy ? 0 : 1
})
request.on('timeout', () => request.destroy(new Error(`no reply within ${TIMEOUT_MS} ms`)))
request.on('error', (error) => {
  console.error(`${path} on port ${port}: ${error.message}`)
  process.exitCode = 1
})
