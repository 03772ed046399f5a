/**
 * The kinds of values that settings take, and how each is read from text (flag, variable) or from JSON
 * (file). Failures are values that say what to write instead; they never repeat a secret, because the
 * caller leaves the text out for those.
 */
export type SettingValue = string | number | boolean | readonly string[]

export type SettingKind =
  | { readonly type: 'text' }
  /** Path of a file that must be readable. */
  | { readonly type: 'file' }
  | { readonly type: 'integer'; readonly min: number; readonly max: number }
  /** Milliseconds inside; always written with a unit, so that 6 never means 6 ms by mistake. */
  | { readonly type: 'duration' }
  | { readonly type: 'boolean' }
  | { readonly type: 'choice'; readonly choices: readonly string[] }
  /** Name of a group or member. */
  | { readonly type: 'name' }
  | { readonly type: 'names' }
  /** Servers, each of which `pattern` accepts; `form` says how to write one. */
  | { readonly type: 'servers'; readonly pattern: RegExp; readonly form: string }
  | { readonly type: 'url' }
  | { readonly type: 'prefix' }

export type ReadValue =
  | { readonly ok: true; readonly value: SettingValue }
  /** `wanted` completes "write …". */
  | { readonly ok: false; readonly wanted: string }

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/
const NAME_FORM = '1 to 64 letters, digits, "_" or "-", starting with a letter or digit'
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Reads a value of a flag or variable. Lists are separated by commas. */
export function readText(kind: SettingKind, text: string): ReadValue {
  const trimmed = text.trim()
  switch (kind.type) {
    case 'integer':
      return readInteger(kind, /^-?\d+$/.test(trimmed) ? Number(trimmed) : null)
    case 'boolean':
      if (['true', '1', 'yes', 'on'].includes(trimmed.toLowerCase())) return good(true)
      if (['false', '0', 'no', 'off'].includes(trimmed.toLowerCase())) return good(false)
      return bad('true or false')
    case 'names':
    case 'servers':
      return readList(
        kind,
        trimmed.split(',').map((part) => part.trim()),
      )
    case 'duration':
      return readDuration(trimmed)
    case 'text':
    case 'file':
    case 'choice':
    case 'name':
    case 'url':
    case 'prefix':
      return readPlain(kind, trimmed)
    default:
      return kind satisfies never
  }
}

/** Reads a value of the configuration file. */
export function readJson(kind: SettingKind, value: unknown): ReadValue {
  switch (kind.type) {
    case 'integer':
      return readInteger(kind, typeof value === 'number' ? value : null)
    case 'boolean':
      return typeof value === 'boolean' ? good(value) : bad('true or false, without quotes')
    case 'names':
    case 'servers':
      if (typeof value === 'string') return readText(kind, value)
      if (Array.isArray(value) && value.every((item) => typeof item === 'string')) {
        return readList(kind, value)
      }
      return bad(`a list of texts, ${listForm(kind)}`)
    case 'duration':
      return typeof value === 'string' ? readDuration(value) : bad(DURATION_FORM)
    case 'text':
    case 'file':
    case 'choice':
    case 'name':
    case 'url':
    case 'prefix':
      return typeof value === 'string' ? readPlain(kind, value) : bad('a text in quotes')
    default:
      return kind satisfies never
  }
}

/** Milliseconds of `6s`, `500ms`, `2m`, `1h`, `0`; null for anything else. */
export function durationMs(text: string): number | null {
  if (text === '0') return 0
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
  const unitMs = UNITS[match?.[2] ?? '']
  if (match === null || unitMs === undefined) return null
  const milliseconds = Number(match[1]) * unitMs
  return Number.isSafeInteger(milliseconds) ? milliseconds : null
}

/** `6s` for 6000: the largest unit that divides it, as {@link durationMs} reads it. */
export function describeDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0'
  for (const unit of ['h', 'm', 's'] as const) {
    const unitMs = UNITS[unit] ?? 1
    if (milliseconds % unitMs === 0) return `${milliseconds / unitMs}${unit}`
  }
  return `${milliseconds}ms`
}

export const DURATION_FORM = 'a duration with its unit, such as 500ms, 6s or 2m'

type PlainKind = Exclude<
  SettingKind,
  { type: 'integer' | 'boolean' | 'names' | 'servers' | 'duration' }
>

function readPlain(kind: PlainKind, text: string): ReadValue {
  switch (kind.type) {
    case 'text':
      return text === '' ? bad('a text that is not empty') : good(text)
    case 'file':
      return text === '' ? bad('the path of a file') : good(text)
    case 'choice':
      return kind.choices.includes(text) ? good(text) : bad(`one of ${kind.choices.join(', ')}`)
    case 'name':
      return NAME.test(text) ? good(text) : bad(NAME_FORM)
    case 'url':
      return isHttpUrl(text)
        ? good(text.replace(/\/+$/, ''))
        : bad('an address such as http://127.0.0.1:7300')
    case 'prefix':
      return /^\/(?:[^/\s]+\/)*$/.test(text) ? good(text) : bad('a prefix such as /tenure/v1/')
    default:
      return kind satisfies never
  }
}

function readInteger(
  kind: { readonly min: number; readonly max: number },
  value: number | null,
): ReadValue {
  const { min, max } = kind
  if (value !== null && Number.isSafeInteger(value) && value >= min && value <= max) {
    return good(value)
  }
  return bad(
    max === Number.MAX_SAFE_INTEGER
      ? `a whole number, at least ${min}`
      : `a whole number from ${min} to ${max}`,
  )
}

function readList(
  kind: Extract<SettingKind, { type: 'names' | 'servers' }>,
  items: readonly string[],
): ReadValue {
  const pattern = kind.type === 'names' ? NAME : kind.pattern
  const sound = items.length > 0 && items.every((item) => pattern.test(item))
  return sound ? good([...new Set(items)]) : bad(listForm(kind))
}

function listForm(kind: Extract<SettingKind, { type: 'names' | 'servers' }>): string {
  return kind.type === 'names'
    ? `one or several names, each of ${NAME_FORM}`
    : `one or several of ${kind.form}`
}

function readDuration(text: string): ReadValue {
  const milliseconds = durationMs(text)
  return milliseconds === null ? bad(DURATION_FORM) : good(milliseconds)
}

function isHttpUrl(text: string): boolean {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false
  const url = new URL(text)
  return url.username === '' && url.search === '' && url.hash === ''
}

function good(value: SettingValue): ReadValue {
  return { ok: true, value }
}

function bad(wanted: string): ReadValue {
  return { ok: false, wanted }
}
