/**
 * The process's logger: one JSON object per line, or readable lines on a terminal, on standard error so
 * that standard output stays for data.
 *
 * Lines are written behind the event loop's back: whoever reads the log slowly costs lines once
 * `BACKLOG_BYTES_MAX` waits (they are dropped), never a lease. What waits is written at a normal exit.
 *
 * Secrets: fields with telling names are blanked, and so is the user part of any URL and any bearer
 * token inside any text, in the line as it leaves.
 */
import pino from 'pino'
import { prettyFactory } from 'pino-pretty'

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'

export type LoggerOptions = {
  readonly level: LogLevel
  /** Readable lines [only when standard error is a terminal]. */
  readonly pretty?: boolean
  /** Colours in readable lines [as `pretty`, unless NO_COLOR is set]. */
  readonly colour?: boolean
  /** Fields of every line, such as the member's name. */
  readonly fields?: Readonly<Record<string, string | number>>
  /** Where lines go instead of standard error. */
  readonly destination?: { write(line: string): void }
}

const BACKLOG_BYTES_MAX = 8 * 1024 * 1024
const SECRET_NAMES = [
  ...['password', 'passwd', 'secret', 'credentials', 'creds', 'apiKey', 'privateKey', 'nkey'],
  ...['bearerToken', 'authorization', 'cookie'],
]
const BLANK = '[redacted]'
const URL_USER = /([a-z][a-z0-9+.-]*:\/\/)[^\s/@"'\\]+@/gi
const BEARER = /\b(Bearer\s+)[^\s"'\\,]+/gi

export function createLogger(options: LoggerOptions): pino.Logger {
  const pretty = options.pretty ?? process.stderr.isTTY === true
  const colorize = options.colour ?? !process.env['NO_COLOR']
  const readable = pretty
    ? prettyFactory({
        colorize,
        ignore: 'pid,event',
        translateTime: 'SYS:HH:MM:ss.l',
        singleLine: true,
      })
    : null
  const settings: pino.LoggerOptions = {
    level: options.level,
    base: { pid: process.pid, ...options.fields },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
      censor: BLANK,
    },
    hooks: {
      streamWrite: (line) => redactText(readable === null ? line : (readable(line) ?? '')),
    },
  }
  return pino(settings, options.destination ?? standardError())
}

/** Text without the user part of URLs and without bearer tokens. */
export function redactText(text: string): string {
  return text.replace(URL_USER, `$1${BLANK}@`).replace(BEARER, `$1${BLANK}`)
}

function standardError(): pino.DestinationStream {
  return pino.destination({ dest: 2, sync: false, maxLength: BACKLOG_BYTES_MAX })
}
