/**
 * A protected resource in the test's own process: each partition is a counter, fenced by token, behind
 * HTTP. It stamps what it is asked with the machine's clock and keeps all of it as evidence.
 *
 *   POST /seal  { token }                        → 200 { checkpoint } | 409
 *   POST /begin { token }                        → 200, once the test lets it: work that asks first
 *   POST /apply { token, sequence, admittedMs }  → 200 | 409
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { LedgerBook, type LedgerToken } from '../../../src/dev/ledger-book.ts'
import { machineMs } from '../../../src/dev/machine-time.ts'
import type { CleanUp } from '../../support/servers.ts'

const EFFECT_MAX_MS = 60

export type Seal = { readonly token: LedgerToken; readonly atMs: number; readonly sealed: boolean }

export type Effect = {
  readonly token: LedgerToken
  readonly sequence: number
  /** When the worker's gate admitted the work, by the worker's own look at the machine's clock. */
  readonly admittedMs: number
  readonly beginMs: number
  readonly endMs: number
  readonly outcome: 'applied' | 'already' | 'refused'
}

export type FencedResource = {
  readonly url: string
  readonly seals: readonly Seal[]
  readonly effects: readonly Effect[]
  /** From now on the partition's answers to the request wait until `letGo`. */
  hold(what: 'begin' | 'apply', partition: number): Hold
}

export type Hold = {
  /** Tokens whose requests wait now. */
  waiting(): readonly LedgerToken[]
  letGo(): void
}

type Gate = { readonly waiting: LedgerToken[]; readonly opened: Promise<void>; open(): void }

export async function startFencedResource(cleanUp: CleanUp): Promise<FencedResource> {
  const book = new LedgerBook()
  const seals: Seal[] = []
  const effects: Effect[] = []
  const gates = new Map<string, Gate>()

  const pass = async (what: string, token: LedgerToken) => {
    const gate = gates.get(`${what} ${token.partition}`)
    if (gate === undefined) return
    gate.waiting.push(token)
    await gate.opened
  }
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const beginMs = machineMs()
    const body = JSON.parse(await bodyOf(request))
    const token = body.token as LedgerToken
    const reply = (status: number, value: object) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(value))
    }
    switch (request.url) {
      case '/seal': {
        const outcome = book.seal(token)
        seals.push({ token, atMs: machineMs(), sealed: outcome.ok })
        reply(outcome.ok ? 200 : 409, outcome)
        return
      }
      case '/begin':
        await pass('begin', token)
        reply(200, {})
        return
      case '/apply': {
        const { sequence, admittedMs } = body as { sequence: number; admittedMs: number }
        await pass('apply', token)
        // An effect takes its time, so that drains and deaths find work in flight.
        if (!book.refuses(token)) await delay(sequence % EFFECT_MAX_MS)
        const applied = book.apply(token, sequence)
        const { outcome } = applied
        effects.push({ token, sequence, admittedMs, beginMs, endMs: machineMs(), outcome })
        reply(outcome === 'refused' ? 409 : 200, applied)
        return
      }
      default:
        reply(404, {})
    }
  }
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp.after(async () => {
    for (const gate of gates.values()) gate.open()
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seals,
    effects,
    hold(what, partition) {
      const name = `${what} ${partition}`
      const gate = createGate()
      gates.set(name, gate)
      return {
        waiting: () => gate.waiting,
        letGo: () => {
          gates.delete(name)
          gate.open()
        },
      }
    },
  }
}

function createGate(): Gate {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { waiting: [], opened, open }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
