/**
 * Any key as one legal NATS subject token, and back.
 *
 *   token   = "%" for the empty key, else one piece per character of the key
 *   piece   = the character itself, or "%XX" with two upper-case hex digits for each byte below
 *   escaped = U+0000..U+0020 and U+007F (one byte each), "%", ".", "*", ">",
 *             and lone surrogates (three bytes, as UTF-8 would write their number: %ED%A0%80 ..)
 *
 * All other characters, ASCII or not, stand for themselves in UTF-8. No two keys share a token, since
 * "%" in a token always begins an escape, except in the token "%" alone. For well-formed keys other than
 * the empty one this is percent-encoding that any URL decoder reads.
 *
 * A key is *plain* when it encodes to itself: it is not empty and has no character that is escaped. For
 * plain keys the server's mapping `partition(P, 1)` of the token equals `partitionOf(key, P)`, at every
 * P. For other keys the server sees the token and not the key, so it computes
 * `partitionOf(encodeSubjectToken(key), P)`, which is another partition as a rule: whoever publishes such
 * keys computes the partition itself and puts its number into the subject. (A key with "%" that is
 * published raw, not encoded, is hashed as it stands and agrees too.)
 *
 * Not promised: a length. The server refuses subjects longer than its control line (4,096 bytes).
 */

const ESCAPED_BYTE = Array.from(
  { length: 256 },
  (_, byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
)
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const NOT_PLAIN = /[\u0000-\u0020\u007f%.*>]|\p{Surrogate}/u
const EACH_NOT_PLAIN = new RegExp(NOT_PLAIN.source, 'gu')
const EMPTY_TOKEN = '%'

/**
 * The key as one legal subject token.
 * @example encodeSubjectToken('customer 17.b')  // 'customer%2017%2Eb'
 */
export function encodeSubjectToken(key: string): string {
  if (key === '') return EMPTY_TOKEN
  return NOT_PLAIN.test(key) ? key.replace(EACH_NOT_PLAIN, escapeCharacter) : key
}

/** The key that {@link encodeSubjectToken} made this token from; null when it makes no such token. */
export function decodeSubjectToken(token: string): string | null {
  if (token === EMPTY_TOKEN) return ''
  const key = token.replace(/%ED%[AB][0-9A-F]%[89AB][0-9A-F]|%[0-7][0-9A-F]/g, unescapeCharacter)
  return encodeSubjectToken(key) === token ? key : null
}

/** True when the key encodes to itself, so that the server's own mapping agrees with `partitionOf`. */
export function isPlainKey(key: string): boolean {
  return key !== '' && !NOT_PLAIN.test(key)
}

function escapeCharacter(character: string): string {
  const point = character.charCodeAt(0)
  if (point < 0x80) return ESCAPED_BYTE[point] ?? ''
  const bytes = [0xe0 | (point >> 12), 0x80 | ((point >> 6) & 0x3f), 0x80 | (point & 0x3f)]
  return bytes.map((byte) => ESCAPED_BYTE[byte]).join('')
}

function unescapeCharacter(escaped: string): string {
  const [first = 0, second = 0, third = 0] = escaped
    .slice(1)
    .split('%')
    .map((digits) => Number.parseInt(digits, 16))
  if (first < 0x80) return String.fromCharCode(first)
  return String.fromCharCode(((first & 0x0f) << 12) | ((second & 0x3f) << 6) | (third & 0x3f))
}
