/**
 * The hash by which two maps are compared without sending them: two lanes of 32 bits, each the sum,
 * modulo 2^32, of one number per granted partition and one per live member. A sum does not depend on
 * order, so a change costs one subtraction and one addition. It guards against lost messages and bugs,
 * not against an adversary.
 *
 * In full, so that other languages can compute it. `fnv` is FNV-1a 32 of UTF-8 bytes; numbers are
 * 32-bit unsigned and arithmetic wraps:
 *
 *   mix(h, x)  = let a = (h xor x) * 0x85ebca6b; let b = (a xor (a >> 13)) * 0xc2b2ae35 in b xor (b >> 16)
 *   partition  = fold mix over [partition, incarnation mod 2^32, generation mod 2^32, phase, owner]
 *                from the lane's seed; phase 0 vacant, 1 owned, 2 revoking, 3 halted; owner 0 when
 *                there is none, else the lane's fnv; a partition never granted counts 0
 *   member     = fold mix over [fnv of the lane's text] from the lane's seed; live members only
 *
 *   lane   seed         owner                member
 *   first  0x9e3779b9   fnv "name/session"   fnv "name/session/address/zone"
 *   second 0x7f4a7c15   fnv "session/name"   fnv "session/name/zone/address"
 *
 * The text form is 16 lower-case hex digits, first lane first. What members serve is no part of it: that
 * is a hint, and hints reach processes at different times.
 */
import { fnv1a32 } from './partition-key.ts'

const FIRST_SEED = 0x9e3779b9
const SECOND_SEED = 0x7f4a7c15

/** One number per lane. */
export type Lanes = { readonly first: number; readonly second: number }

export const NO_LANES: Lanes = { first: 0, second: 0 }

export function ownerLanes(member: string, session: string): Lanes {
  return { first: fnv1a32(`${member}/${session}`), second: fnv1a32(`${session}/${member}`) }
}

export function memberLanes(member: string, session: string, address: string, zone: string): Lanes {
  return {
    first: mix(FIRST_SEED, fnv1a32(`${member}/${session}/${address}/${zone}`)) >>> 0,
    second: mix(SECOND_SEED, fnv1a32(`${session}/${member}/${zone}/${address}`)) >>> 0,
  }
}

/** The running sums of one map. */
export class MapHash {
  private first = 0
  private second = 0

  addMember(lanes: Lanes): void {
    this.first = (this.first + lanes.first) >>> 0
    this.second = (this.second + lanes.second) >>> 0
  }

  removeMember(lanes: Lanes): void {
    this.first = (this.first - lanes.first) >>> 0
    this.second = (this.second - lanes.second) >>> 0
  }

  /** Adds what one partition counts (`sign` 1), or takes it away again (-1). */
  countPartition(
    sign: 1 | -1,
    partition: number,
    incarnation: number,
    generation: number,
    phase: number,
    owner: Lanes,
  ): void {
    if (generation === 0) return
    const first = fold(FIRST_SEED, partition, incarnation, generation, phase, owner.first)
    const second = fold(SECOND_SEED, partition, incarnation, generation, phase, owner.second)
    this.first = (this.first + sign * first) >>> 0
    this.second = (this.second + sign * second) >>> 0
  }

  text(): string {
    return hex8(this.first) + hex8(this.second)
  }
}

function fold(
  seed: number,
  partition: number,
  incarnation: number,
  generation: number,
  phase: number,
  owner: number,
): number {
  const h = mix(mix(mix(mix(seed, partition), incarnation), generation), phase)
  return mix(h, owner) >>> 0
}

/** The bit operators take a number modulo 2^32, also one above it. */
function mix(h: number, x: number): number {
  const a = Math.imul(h ^ x, 0x85ebca6b)
  const b = Math.imul(a ^ (a >>> 13), 0xc2b2ae35)
  return b ^ (b >>> 16)
}

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0')
}
