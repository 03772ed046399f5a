/**
 * The accept log: what a protected resource did with each token, one JSON object per line, in the order
 * in which it decided. It is written by the resource, never by a worker.
 *
 *   {"type":"sealed","token":T,"atMs":N}
 *   {"type":"effect","token":T,"input":"order-17","beginMs":N,"endMs":N,"outcome":"applied"}
 *
 *   T        {"partition":N,"incarnation":N,"generation":N,"session":"16 hex digits"}, more is ignored
 *   input    id of the acknowledged input that the effect is of; null: of none
 *   outcome  applied | already (token accepted, effect known) | refused (by the fence)
 *   times    milliseconds on one clock for the whole log, that of the history if it has times; an effect
 *            ends when it is durable, before its caller is told
 *   resource name of the resource, where one log holds several; each is judged by itself
 *
 * Lines of another type are passed over. A torn last line, as a crash leaves it, is passed over too; any
 * other line that cannot be read is an error.
 */
import { createTenureError } from '../core/tenure-error.ts'
import { isObject, jsonLines } from './json-lines.ts'

export type EvidenceToken = {
  readonly partition: number
  readonly incarnation: number
  readonly generation: number
  readonly session: string
}

export type SealedLine = {
  readonly type: 'sealed'
  readonly token: EvidenceToken
  readonly atMs: number
  readonly resource?: string
}

export type EffectLine = {
  readonly type: 'effect'
  readonly token: EvidenceToken
  readonly input: string | null
  readonly beginMs: number
  readonly endMs: number
  readonly outcome: 'applied' | 'already' | 'refused'
  readonly resource?: string
}

export type AcceptLine = SealedLine | EffectLine

/** @throws TenureError `invalid-argument` naming the line that is none. */
export function parseAcceptLog(text: string, name: string): readonly AcceptLine[] {
  return jsonLines(text).flatMap(({ value, line, isLast }): AcceptLine[] => {
    if (isAcceptLine(value)) return [value]
    if (isLast && value === null) return []
    const isOther = isObject(value) && value['type'] !== 'sealed' && value['type'] !== 'effect'
    if (isOther && typeof value['type'] === 'string') return []
    throw createTenureError(
      'invalid-argument',
      `${name}, line ${line}: no line of an accept log: correct it, or name the right file`,
    )
  })
}

/**
 * The list of acknowledged inputs: `{"input":"order-17"}` per line, more fields are ignored.
 * @throws TenureError `invalid-argument` naming the line that is none.
 */
export function parseInputs(text: string, name: string): readonly string[] {
  return jsonLines(text).flatMap(({ value, line, isLast }): string[] => {
    if (isObject(value) && typeof value['input'] === 'string') return [value['input']]
    if (isLast && value === null) return []
    throw createTenureError(
      'invalid-argument',
      `${name}, line ${line}: no acknowledged input: write {"input":"its id"}`,
    )
  })
}

/** What the fence let through, be it a seal or an effect. */
export function isAccepted(line: AcceptLine): boolean {
  return line.type === 'sealed' || line.outcome !== 'refused'
}

/** One text per token, its session included. */
export function tokenId(token: EvidenceToken): string {
  return `${token.partition} ${token.incarnation}.${token.generation} ${token.session}`
}

function isAcceptLine(value: unknown): value is AcceptLine {
  if (!isObject(value) || !isToken(value['token'])) return false
  if (value['type'] === 'sealed') return isTime(value['atMs'])
  const { type, input, beginMs, endMs, outcome } = value
  return (
    type === 'effect' &&
    (input === null || typeof input === 'string') &&
    isTime(beginMs) &&
    isTime(endMs) &&
    (outcome === 'applied' || outcome === 'already' || outcome === 'refused')
  )
}

function isToken(value: unknown): boolean {
  return (
    isObject(value) &&
    Number.isSafeInteger(value['partition']) &&
    Number.isSafeInteger(value['incarnation']) &&
    Number.isSafeInteger(value['generation']) &&
    typeof value['session'] === 'string'
  )
}

function isTime(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value)
}
