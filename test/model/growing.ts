/** A list of small integers that grows, in plain memory. Blocks, so that growing copies nothing. */
const BLOCK_BITS = 20
const BLOCK = 1 << BLOCK_BITS

export class Growing {
  private readonly blocks: Int32Array[] = []
  length = 0

  push(value: number): void {
    const at = this.length & (BLOCK - 1)
    if (at === 0) this.blocks.push(new Int32Array(BLOCK))
    const block = this.blocks[this.blocks.length - 1] as Int32Array
    block[at] = value
    this.length += 1
  }

  append(values: Int32Array): void {
    for (let at = 0; at < values.length; at += 1) this.push(values[at] as number)
  }

  at(index: number): number {
    return (this.blocks[index >>> BLOCK_BITS] as Int32Array)[index & (BLOCK - 1)] as number
  }

  slice(from: number, to: number): Int32Array {
    const values = new Int32Array(to - from)
    for (let at = from; at < to; at += 1) values[at - from] = this.at(at)
    return values
  }
}
