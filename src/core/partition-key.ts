/**
 * Which partition a key belongs to: FNV-1a, 32 bit, of the key's UTF-8 bytes, modulo P. That is what the
 * NATS server's subject mapping `partition(P, …)` computes of a token, so publishers that know nothing of
 * Tenure can publish by key (subject-token.ts says for which keys the two agree).
 *
 * A lone surrogate has no UTF-8 form and counts as U+FFFD, as every encoder of the platform writes it.
 */
import type { PartitionId } from './ids.ts'

const OFFSET_BASIS = 0x811c9dc5
const PRIME = 0x01000193

/**
 * The key's partition, 0 .. partitions - 1. The same for ever for the same P: another P is another group.
 * @param partitions P, an integer of 1 or more.
 * @example partitionOf('customer-17', 64)
 */
export function partitionOf(key: string, partitions: number): PartitionId {
  return fnv1a32(key) % partitions
}

/** FNV-1a, 32 bit, of the text's UTF-8 bytes, unsigned. */
export function fnv1a32(text: string): number {
  let hash = OFFSET_BASIS
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) {
      hash = Math.imul(hash ^ unit, PRIME)
      continue
    }
    const point = scalarAt(text, index)
    if (point > 0xffff) index += 1
    hash = addMultiByte(hash, point)
  }
  return hash >>> 0
}

/** The scalar value that begins at `index`; U+FFFD for a lone surrogate. */
function scalarAt(text: string, index: number): number {
  const point = text.codePointAt(index) ?? 0xfffd
  return point >= 0xd800 && point <= 0xdfff ? 0xfffd : point
}

/** Folds the two to four UTF-8 bytes of a scalar value from 0x80 up. */
function addMultiByte(before: number, point: number): number {
  let hash = before
  if (point < 0x800) hash = Math.imul(hash ^ (0xc0 | (point >> 6)), PRIME)
  else {
    if (point < 0x10000) hash = Math.imul(hash ^ (0xe0 | (point >> 12)), PRIME)
    else {
      hash = Math.imul(hash ^ (0xf0 | (point >> 18)), PRIME)
      hash = Math.imul(hash ^ (0x80 | ((point >> 12) & 0x3f)), PRIME)
    }
    hash = Math.imul(hash ^ (0x80 | ((point >> 6) & 0x3f)), PRIME)
  }
  return Math.imul(hash ^ (0x80 | (point & 0x3f)), PRIME)
}
