/** Leads a configuration along one trace, move by move, and asks what the production machines made of it. */
import assert from 'node:assert/strict'
import type { PartitionId } from '../../src/core/ids.ts'
import type { Ownership } from '../../src/core/ownership-state.ts'
import type { PartitionRecord } from '../../src/core/partition-record.ts'
import { checkMoment } from './checks.ts'
import { Model } from './model.ts'
import { allMoves } from './moves.ts'
import { servedRow } from './served.ts'
import type { Settings } from './settings.ts'

export class Walk {
  readonly model: Model
  private row: Int32Array

  constructor(settings: Settings) {
    this.model = new Model(settings)
    this.row = settings.start === 'served' ? servedRow(this.model) : this.model.startRow()
  }

  /** Takes these moves, one after the other; each must be there. */
  go(...labels: readonly string[]): this {
    for (const label of labels) {
      const next = this.moves().get(label)
      const there = () => `no "${label}" among:\n  ${[...this.moves().keys()].join('\n  ')}`
      assert.ok(next !== undefined, next === undefined ? there() : '')
      this.row = next
      checkMoment(this.model, this.row)
    }
    return this
  }

  /** Asserts that no such move is possible now. */
  cannot(...labels: readonly string[]): this {
    const moves = this.moves()
    for (const label of labels) assert.ok(!moves.has(label), `"${label}" is possible`)
    return this
  }

  labels(): readonly string[] {
    return [...this.moves().keys()]
  }

  record(partition: PartitionId = 0): PartitionRecord | null {
    const record = this.row[this.model.layout.records + partition] as number
    return this.model.words.stored(record)?.record ?? null
  }

  /** `owned 1.2 b`, `vacant 1.1`. */
  stands(partition: PartitionId = 0): string {
    const record = this.record(partition)
    if (record === null) return 'nothing'
    const owner = record.phase === 'vacant' ? '' : ` ${record.owner.member}`
    return `${record.phase} ${record.incarnation}.${record.generation}${owner}`
  }

  seat(process: number, partition: PartitionId = 0): Ownership {
    const { seats } = this.model.process(process)
    return this.model.seats.of(this.row[seats + partition] as number).seat.now
  }

  /** `serving 1.2`, `absent`. */
  holds(process: number, partition: PartitionId = 0): string {
    const now = this.seat(process, partition)
    if (!('grant' in now)) return now.status
    return `${now.status} ${now.grant.incarnation}.${now.grant.generation}`
  }

  isLive(process: number): boolean {
    return this.model.believes(this.row, process) !== 0
  }

  private moves(): ReadonlyMap<string, Int32Array> {
    const moves = new Map<string, Int32Array>()
    this.model.look(this.row, (row, _, label) => {
      const words = label()
      if (!moves.has(words)) moves.set(words, row.slice())
    })
    allMoves(this.model)
    return moves
  }
}
