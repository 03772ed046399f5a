/** The commits that rebalancers may send for a record, made by the production functions, each once. */
import type { StoredRecord } from '../../src/core/commit.ts'
import { type Commit, force, retarget, revoke, vacate } from '../../src/core/commit.ts'
import type { MemberName } from '../../src/core/ids.ts'
import type { PendingMove } from '../../src/core/partition-record.ts'
import { checkCommit } from '../../src/core/record-invariants.ts'
import { assertUnbroken } from './broken.ts'
import { type Cast, rebalancerSession } from './cast.ts'
import type { BudgetKey } from './settings.ts'
import { Memory, pair } from './table.ts'
import { named, operationName, UNNAMED, type Words } from './words.ts'

/** A commit that may be sent, before its operation id is chosen. */
export type Wish = {
  readonly key: BudgetKey
  readonly words: string
  readonly content: number
  /** The commit's number by that of its operation. */
  readonly numbered: Memory<number>
  readonly commit: Commit
}

/** One stands for all: no record names its rebalancer. */
const SESSION = rebalancerSession(0)
const STAMP = { operation: UNNAMED, atMs: 0 }

export class PlannerCommits {
  private readonly words: Words
  private readonly cast: Cast
  private readonly fixed = new Memory<readonly Wish[]>()
  private readonly forced = new Memory<Wish>()

  constructor(words: Words, cast: Cast) {
    this.words = words
    this.cast = cast
  }

  /** What needs no grantee: revoking, turning the move, and forcing it vacant. */
  wishes(record: number): readonly Wish[] {
    return this.fixed.of(record, () => [...this.revokes(record), ...this.rewrites(record)])
  }

  force(record: number, grantee: number, incarnation: number): Wish {
    const key = pair(record, grantee * 64 + incarnation)
    return this.forced.of(key, () => {
      const { stored, partition } = this.words.records.of(record)
      const owner = this.cast.owner(grantee)
      const by = { type: 'rebalancer', session: SESSION } as const
      const commit = force(partition, stored, owner, incarnation, by, STAMP)
      return this.wish(stored, commit, 'forces', `forces p${partition} to ${owner.member}`)
    })
  }

  /** The wish as a commit with this operation number. */
  number(wish: Wish, operation: number): number {
    return wish.numbered.of(operation, () =>
      this.words.commit(named(wish.commit, operationName(wish.content, operation))),
    )
  }

  private revokes(id: number): readonly Wish[] {
    const { stored, partition } = this.words.records.of(id)
    const { record, raw } = stored
    if (record.phase !== 'owned') return []
    return this.targets()
      .filter((to) => to !== record.owner.member)
      .map((to) => {
        const move: PendingMove = { id: 'm', to, reason: 'balance', by: 'r', rewrites: 0, atMs: 0 }
        const commit = revoke(partition, { raw, record }, move, SESSION, STAMP)
        return this.wish(stored, commit, 'revokes', `revokes p${partition}, to ${to}`)
      })
  }

  private rewrites(id: number): readonly Wish[] {
    const { stored, partition } = this.words.records.of(id)
    const { record, raw } = stored
    if (record.phase !== 'revoking') return []
    const turned = this.targets()
      .filter((to) => to !== record.move.to)
      .map((to) => {
        const commit = retarget(partition, { raw, record }, to, SESSION, STAMP)
        return this.wish(stored, commit, 'rewrites', `turns p${partition} to ${to}`)
      })
    const by = { type: 'rebalancer', session: SESSION } as const
    const vacated = vacate(partition, stored, STAMP, [by])
    return [...turned, this.wish(stored, vacated, 'forces', `forces p${partition} vacant`)]
  }

  private targets(): readonly (MemberName | null)[] {
    return [...this.cast.names, null]
  }

  private wish(stored: StoredRecord, commit: Commit, key: BudgetKey, words: string): Wish {
    assertUnbroken(checkCommit(stored.record, commit, 'rebalancer'), words)
    const content = this.words.content(commit)
    return { key, words, content, commit, numbered: new Memory() }
  }
}
