/** An owner of the conformance suite as a process of its own: URL of the resource. */
import { createHttpFence } from '../../src/fence/http.ts'
import { serveFenceOwner } from '../../src/testing/index.ts'

const baseUrl = process.argv[2] ?? ''
void serveFenceOwner({
  fence: createHttpFence({ baseUrl }),
  effectOf: (_token, number) => ({
    url: `${baseUrl}/append`,
    init: {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ number }),
    },
  }),
})
