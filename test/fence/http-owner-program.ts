/**
 * An owner of the conformance suite as a process of its own: URL of the resource. It listens too, since the
 * resource asks it back in the middle of an effect (`http-resource-program.ts`), where it can stand still.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHttpFence, type HttpEffect } from '../../src/fence/http.ts'
import { type EffectStep, serveFenceOwner } from '../../src/testing/index.ts'

const baseUrl = process.argv[2] ?? ''
const steps = new Map<number, EffectStep>()
const asked = createServer(async (request, response) => {
  const [, number = '', at = ''] = (request.url ?? '').split('/')
  if (at === 'checked' || at === 'written') await steps.get(Number(number))?.(at)
  response.end()
})
asked.listen(0, '127.0.0.1')
await once(asked, 'listening')
const askAt = `http://127.0.0.1:${(asked.address() as AddressInfo).port}`
const fence = createHttpFence({ baseUrl })

void serveFenceOwner<HttpEffect, void>({
  fence: {
    seal: fence.seal,
    async guard(token, effect) {
      const outcome = await fence.guard(token, effect)
      if (!outcome.ok) return outcome
      const reply = outcome.value
      // The body is read to its end, so that the connection serves again.
      const text = await reply.text()
      if (!reply.ok) throw new Error(`${reply.status}: ${text}`)
      return { ok: true, value: undefined }
    },
  },
  effectOf(_token, number, step) {
    steps.set(number, step)
    return {
      url: `${baseUrl}/append`,
      init: {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ number, askAt }),
      },
    }
  },
})
