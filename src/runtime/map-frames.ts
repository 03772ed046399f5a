/**
 * The bytes of map messages: JSON, deflated where that pays, and a snapshot cut into pieces that fit a
 * message (format: core/map-wire.ts). Deflate runs synchronously at level 1: a snapshot of 100,000
 * partitions takes a few milliseconds, and its bytes are kept until the map changes.
 */
import { deflateSync, inflateSync } from 'node:zlib'
import type { GoneMember, MapMember } from '../core/map-members.ts'
import type { MapDelta } from '../core/map-merge.ts'
import { encodeDelta } from '../core/map-wire.ts'
import type { MapEntry } from '../core/ownership-map.ts'
import { isObject } from '../core/record-format.ts'

/** Below this, deflate saves less than it costs. */
const DEFLATE_FROM_CHARACTERS = 1024
/** Far above a map of a million partitions; keeps a hostile frame from filling memory. */
const INFLATED_BYTES_MAX = 64 << 20
/** Room for a reply's header line and for the transport's own framing. */
const HEADER_BYTES_MAX = 512
/** Entries and members in one part of a delta; halved while they do not fit. */
const PART_ITEMS_MAX = 2000
const LINE_FEED = 0x0a
const OPENING_BRACE = 0x7b

export function encodeFrame(text: string): Uint8Array {
  return text.length < DEFLATE_FROM_CHARACTERS ? Buffer.from(text) : deflateFrame(text)
}

export function deflateFrame(text: string): Uint8Array {
  return deflateSync(text, { level: 1 })
}

/** Null for bytes that are no frame. */
export function decodeFrame(data: Uint8Array): string | null {
  try {
    const json =
      data[0] === OPENING_BRACE ? data : inflateSync(data, { maxOutputLength: INFLATED_BYTES_MAX })
    return Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8')
  } catch {
    return null
  }
}

type DeltaHead = Omit<MapDelta, 'part' | 'parts' | 'members' | 'gone' | 'entries'>

/** A delta as messages that fit; several parts only when one is too small. */
export function cutDelta(
  head: DeltaHead,
  members: readonly MapMember[],
  gone: readonly GoneMember[],
  entries: readonly MapEntry[],
  maxPayloadBytes: number,
): Uint8Array[] {
  const items = Math.max(members.length, gone.length, entries.length, 1)
  for (let perPart = PART_ITEMS_MAX; ; perPart = Math.ceil(perPart / 2)) {
    const parts = Math.ceil(items / perPart)
    const frames: Uint8Array[] = []
    for (let part = 0; part < parts; part += 1) {
      const from = part * perPart
      const to = from + perPart
      const text = encodeDelta({
        part,
        parts,
        members: members.slice(from, to),
        gone: gone.slice(from, to),
        entries: entries.slice(from, to),
        ...head,
      })
      frames.push(encodeFrame(text))
    }
    if (perPart === 1 || frames.every((frame) => frame.length <= maxPayloadBytes)) return frames
  }
}

/** A snapshot's zlib data as reply messages, each at most `maxPayloadBytes` long. */
export function cutReplies(data: Uint8Array, ageMs: number, maxPayloadBytes: number): Uint8Array[] {
  const pieceBytes = Math.max(1, maxPayloadBytes - HEADER_BYTES_MAX)
  const chunks = Math.ceil(data.length / pieceBytes)
  const replies: Uint8Array[] = []
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    const header = JSON.stringify({ v: 1, ageMs, chunk, chunks, bytes: data.length })
    const piece = data.subarray(chunk * pieceBytes, (chunk + 1) * pieceBytes)
    replies.push(Buffer.concat([Buffer.from(`${header}\n`), piece]))
  }
  return replies
}

/** Joins the replies to one request. */
export class ReplyAssembler {
  private readonly pieces: Uint8Array[] = []
  private result: { readonly text: string; readonly ageMs: number } | null = null

  /** True when the snapshot is complete. Pieces out of order or malformed are ignored. */
  add(reply: Uint8Array): boolean {
    const end = reply.indexOf(LINE_FEED)
    const header = end < 0 ? null : readHeader(reply.subarray(0, end))
    if (header === null || header.chunk !== this.pieces.length) return false
    this.pieces.push(reply.subarray(end + 1))
    if (this.pieces.length < header.chunks) return false
    const data = Buffer.concat(this.pieces)
    const text = data.length === header.bytes ? decodeFrame(data) : null
    this.result = text === null ? null : { text, ageMs: header.ageMs }
    return true
  }

  /** Null while incomplete, and for a snapshot that is no frame. */
  complete(): { readonly text: string; readonly ageMs: number } | null {
    return this.result
  }
}

type ReplyHeader = { ageMs: number; chunk: number; chunks: number; bytes: number }

function readHeader(line: Uint8Array): ReplyHeader | null {
  try {
    const header: unknown = JSON.parse(Buffer.from(line).toString('utf8'))
    if (!isObject(header) || header['v'] !== 1) return null
    const { ageMs, chunk, chunks, bytes } = header
    const sound = [ageMs, chunk, chunks, bytes].every((count) => typeof count === 'number')
    return sound ? (header as ReplyHeader) : null
  } catch {
    return null
  }
}
