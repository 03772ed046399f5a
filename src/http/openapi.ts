/**
 * The OpenAPI 3.1 document, built from the same routes and schemas that serve requests. Checked in as
 * `openapi.json` beside this file; `npm run openapi` writes it, a test fails when it has drifted.
 */
import type { Groups } from '../ports/group-access.ts'
import { createHttpServer } from './http-server.ts'

/** The document as text, two spaces deep, with a newline at its end. */
export async function buildOpenApi(): Promise<string> {
  const groups: Groups = { names: () => [], find: () => null }
  const server = await createHttpServer({
    groups,
    metrics: { text: async () => '', contentType: 'text/plain' },
    clock: {
      monotonicMs: () => 0,
      wallMs: () => 0,
      schedule: () => ({ cancel: () => undefined }),
    },
    telemetry: { record: () => undefined },
    access: {},
    host: '127.0.0.1',
    port: 0,
    readiness: () => ({ ready: false, reason: 'only built to be described' }),
  })
  await server.app.ready()
  const text = `${JSON.stringify(server.app.swagger(), null, 2)}\n`
  await server.close()
  return text
}
