/**
 * The ledger process of the demo: an HTTP service that applies orders, fenced by token. It appends each
 * seal and each effect, with the times at which it began and ended, to its accept log
 * (src/evidence/accept-log.ts): the evidence that the report is computed from. A restarted ledger reads its log first, so its fences never fall.
 *
 *   POST /tenure/seal                             → 200 { checkpoint } | 409 as fence/http says
 *   POST /apply        { order, key, sequence }   → 200 { outcome } | 409
 *   GET  /state                                   → { applied }
 */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import fastify, { type FastifyRequest } from 'fastify'
import type { EffectLine, SealedLine } from '../evidence/accept-log.ts'
import { fencePlugin } from '../fence/http.ts'
import { LedgerBook, type LedgerToken } from './ledger-book.ts'
import { machineMs } from './machine-time.ts'

/** A line of an accept log, with what the ledger needs to read its state back. */
export type LedgerLine =
  | (SealedLine & { readonly token: LedgerToken })
  | (EffectLine & {
      readonly token: LedgerToken
      readonly key: string
      readonly sequence: number
    })

export type LedgerOptions = {
  /** Its tokens are taken, no other group's. */
  readonly group: string
  readonly port: number
  readonly logFile: string
  /** How long an effect takes: 5 .. this, by sequence. */
  readonly effectMaxMs: number
}

type ApplyBody = {
  readonly order: string
  readonly key: string
  readonly sequence: number
}

/** Serves until the process ends. */
export async function runLedger(options: LedgerOptions): Promise<void> {
  const book = readLedgerLog(options.logFile)
  const log = openSync(options.logFile, 'a')
  const append = (line: LedgerLine) => writeSync(log, `${JSON.stringify(line)}\n`)
  const beganMs = new WeakMap<object, number>()
  const appendEffect = (
    token: LedgerToken,
    request: FastifyRequest,
    outcome: EffectLine['outcome'],
  ) => {
    const { order, key, sequence } = request.body as ApplyBody
    const endMs = machineMs()
    const beginMs = beganMs.get(request) ?? endMs
    append({ type: 'effect', token, input: order, key, sequence, beginMs, endMs, outcome })
  }
  const server = fastify()
  await server.register(fencePlugin, {
    group: options.group,
    // The log of the effects keeps the mark too, so neither is more durable than the other.
    store: {
      highest: (partition) => book.highest(partition),
      raise(token) {
        append({ type: 'sealed', token, atMs: machineMs() })
        book.seal(token)
      },
    },
    sealed: ({ partition }) => ({ checkpoint: book.checkpoint(partition) }),
    refused: (token, _refusal, request) => appendEffect(token, request, 'refused'),
  })
  server.post<{ Body: ApplyBody }>('/apply', async (request) => {
    const { token, commit } = request.fence
    const { sequence } = request.body
    beganMs.set(request, machineMs())
    await delay(5 + (sequence % Math.max(1, options.effectMaxMs - 5)))
    return commit(() => {
      const { outcome } = book.apply(token, sequence)
      appendEffect(token, request, outcome)
      return { outcome }
    })
  })
  server.get('/state', async () => ({ applied: book.applied }))
  await server.listen({ host: '127.0.0.1', port: options.port })
  process.once('SIGTERM', () => {
    void server.close().then(() => closeSync(log))
  })
}

/** What a log says was sealed and applied. A torn last line, as a crash leaves it, is passed over. */
export function readLedgerLog(logFile: string): LedgerBook {
  const book = new LedgerBook()
  for (const line of readLedgerLines(logFile)) {
    if (line.type === 'sealed') book.seal(line.token)
    else if (line.outcome === 'applied') book.apply(line.token, line.sequence)
  }
  return book
}

export function readLedgerLines(logFile: string): readonly LedgerLine[] {
  if (!existsSync(logFile)) return []
  return readFileSync(logFile, 'utf8')
    .split('\n')
    .flatMap((text): LedgerLine[] => {
      try {
        return text === '' ? [] : [JSON.parse(text) as LedgerLine]
      } catch {
        return []
      }
    })
}
