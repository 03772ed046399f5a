/**
 * The set of states seen so far, by hash compaction: 64 bits of each state in an open-addressing table that
 * grows, the state's number beside it. Two states of one hash would be taken for one; how many that may be
 * is reported with each search (`expectedOmissions`).
 */
const SEEDS = [0x9e3779b1, 0x85ebca6b] as const

export class Visited {
  private low: Uint32Array
  private high: Uint32Array
  /** The state's number plus one; 0: a free place. */
  private numbers: Uint32Array
  private mask: number
  size = 0
  private lowHash = 0
  private highHash = 0

  constructor(capacity = 1 << 16) {
    this.low = new Uint32Array(capacity)
    this.high = new Uint32Array(capacity)
    this.numbers = new Uint32Array(capacity)
    this.mask = capacity - 1
  }

  /** The number of the state, which is `size` before the call when it is new. */
  add(row: Int32Array): number {
    this.hash(row)
    if (this.size * 2 > this.mask) this.grow()
    const at = this.place(this.lowHash, this.highHash)
    const number = this.numbers[at] as number
    if (number > 0) return number - 1
    this.low[at] = this.lowHash
    this.high[at] = this.highHash
    this.size += 1
    this.numbers[at] = this.size
    return this.size - 1
  }

  /** How many states are expected to have been taken for others: pairs times the chance of one pair. */
  expectedOmissions(): number {
    return (this.size * this.size) / 2 / 2 ** 64
  }

  private place(low: number, high: number): number {
    let at = (low ^ (high >>> 15)) & this.mask
    while (this.numbers[at] !== 0 && (this.low[at] !== low || this.high[at] !== high)) {
      at = (at + 1) & this.mask
    }
    return at
  }

  private grow(): void {
    const { low, high, numbers } = this
    const capacity = numbers.length * 2
    this.low = new Uint32Array(capacity)
    this.high = new Uint32Array(capacity)
    this.numbers = new Uint32Array(capacity)
    this.mask = capacity - 1
    for (let from = 0; from < numbers.length; from += 1) {
      if (numbers[from] === 0) continue
      const at = this.place(low[from] as number, high[from] as number)
      this.low[at] = low[from] as number
      this.high[at] = high[from] as number
      this.numbers[at] = numbers[from] as number
    }
  }

  /** Two multiply-and-rotate chains over the row with different seeds, each mixed to the end. */
  private hash(row: Int32Array): void {
    let a: number = SEEDS[0]
    let b: number = SEEDS[1]
    for (let at = 0; at < row.length; at += 1) {
      const value = row[at] as number
      a = Math.imul(a ^ Math.imul(value, 0xcc9e2d51), 0x1b873593)
      a = ((a << 13) | (a >>> 19)) + 0x52dce729
      b = Math.imul(b ^ Math.imul(value + at, 0x2c1b3c6d), 0x297a2d39)
      b = ((b << 11) | (b >>> 21)) + 0x38495ab5
    }
    this.lowHash = finish(a ^ Math.imul(b, 0x27d4eb2f))
    this.highHash = finish(b ^ Math.imul(a, 0x165667b1))
  }
}

function finish(mixed: number): number {
  let value = mixed ^ (mixed >>> 16)
  value = Math.imul(value, 0x85ebca6b)
  value ^= value >>> 13
  value = Math.imul(value, 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
