/**
 * Judges each change of a record, at the revision that made it, by what etcd held and by who sent it:
 *
 *   S1  a grant raises the position, by one generation
 *   S2  the owner changes by a grant alone
 *   S4  the owner gave it up, or its session is gone, or it is a forced move of a fenced group; the
 *       grantee's session lives, and nothing forbids the grant
 *   S5  through `WorkChecker`: nothing runs any more under the token that its owner gave up
 *   S9  only the elected rebalancer revokes or retargets, and one move is pending at most
 *
 * After a restore, S1 is not asked of positions at or below the incarnation that stood then: DESIGN
 * excepts them until an operator has raised it.
 */
import type { PartitionRecord } from '../../src/core/partition-record.ts'
import { checkRecordTransition } from '../../src/core/record-invariants.ts'
import { comparePositions, type Position } from '../../src/core/token.ts'
import { tokenId } from '../../src/evidence/accept-log.ts'
import type { BreachBox, PromiseName } from './breach.ts'
import type { EtcdTruth } from './etcd-truth.ts'
import type { SessionLedger } from './session-ledger.ts'
import type { WorkChecker } from './work-checker.ts'

type Owned = Exclude<PartitionRecord, { readonly phase: 'vacant' }>

export class RecordChecker {
  /** Grants seen. */
  grants = 0
  private readonly truth: EtcdTruth
  private readonly ledger: SessionLedger
  private readonly work: WorkChecker
  private readonly box: BreachBox
  private readonly highest = new Map<number, Position>()
  private restoredThrough = 0

  constructor(truth: EtcdTruth, ledger: SessionLedger, work: WorkChecker, box: BreachBox) {
    this.truth = truth
    this.ledger = ledger
    this.work = work
    this.box = box
  }

  /**
   * The store went back: what was granted until now may be granted again. All of it, whatever incarnation
   * stands at this moment: a wipe may have come in between.
   */
  restored(): void {
    for (const { incarnation } of this.highest.values()) {
      this.restoredThrough = Math.max(this.restoredThrough, incarnation)
    }
  }

  /** Before the truth takes the change in. */
  changed(partition: number, after: PartitionRecord): void {
    const before = this.truth.records.get(partition)?.record ?? null
    for (const { name, detail } of checkRecordTransition(before, after)) {
      const promise: PromiseName = name.startsWith('S') ? (name as PromiseName) : 'S1'
      this.report(promise, partition, `${name}: ${detail}`)
    }
    const owner = before === null || before.phase === 'vacant' ? null : before
    switch (after.phase) {
      case 'owned':
        this.granted(partition, owner, after)
        return
      case 'revoking':
        this.byRebalancer(partition, after, 'revoked')
        return
      case 'vacant':
        this.vacated(partition, owner, after)
        return
      case 'halted':
        if (owner === null || !this.isBy(after, owner)) {
          this.report('S4', partition, `halted by ${this.author(after)}, not by its owner`)
        }
        return
      default:
        after satisfies never
    }
  }

  private granted(
    partition: number,
    before: Owned | null,
    after: PartitionRecord & { readonly phase: 'owned' },
  ): void {
    this.grants += 1
    const { owner, incarnation, generation } = after
    const highest = this.highest.get(partition)
    const isNew = highest === undefined || comparePositions(after, highest) > 0
    if (isNew) this.highest.set(partition, after)
    else if (incarnation > this.restoredThrough) {
      this.report('S1', partition, `granted ${incarnation}.${generation} again`)
    }
    this.work.tokenGranted(tokenId({ partition, incarnation, generation, session: owner.session }))
    if (!this.truth.isAlive(owner.member, owner.session)) {
      this.report('S4', partition, `granted to the dead: ${owner.member}`)
    }
    if (incarnation !== this.truth.incarnation) {
      this.report('S4', partition, `granted in ${incarnation}, it is ${this.truth.incarnation}`)
    }
    if (this.truth.cordons.has(owner.member)) {
      this.report('S4', partition, `granted to ${owner.member}, which is cordoned`)
    }
    if (this.truth.isDisabled(partition)) this.report('S4', partition, 'granted while disabled')
    this.justified(partition, before, after)
  }

  private justified(
    partition: number,
    before: Owned | null,
    after: PartitionRecord & { readonly phase: 'owned' },
  ): void {
    switch (after.how) {
      case 'election':
        if (before !== null && this.truth.isAlive(before.owner.member, before.owner.session)) {
          this.report('S4', partition, `elected while ${before.owner.member} lives`)
        }
        return
      case 'hand-over':
        if (before === null || !this.isBy(after, before)) {
          this.report('S4', partition, `handed over by ${this.author(after)}, not by its owner`)
          return
        }
        this.work.tokenHandedOver(idOf(partition, before), partition)
        return
      case 'forced':
        if (before !== null) this.work.tokenForced(idOf(partition, before))
        if (this.truth.config?.fenced !== true) {
          this.report('S4', partition, 'a forced move in a group that is not fenced')
        }
        if (before === null || !this.isBy(after, before)) {
          this.byRebalancer(partition, after, 'forced')
        }
        return
      default:
        after.how satisfies never
    }
  }

  private vacated(partition: number, before: Owned | null, after: PartitionRecord): void {
    if (before === null) return
    if (this.isBy(after, before)) {
      this.work.tokenHandedOver(idOf(partition, before), partition)
      return
    }
    if (!this.truth.isAlive(before.owner.member, before.owner.session)) return
    this.work.tokenForced(idOf(partition, before))
    if (this.truth.config?.fenced !== true) {
      this.report('S4', partition, `taken from ${before.owner.member} by ${this.author(after)}`)
    }
    this.byRebalancer(partition, after, 'vacated')
  }

  private byRebalancer(partition: number, after: PartitionRecord, what: string): void {
    const { rebalancer } = this.truth
    const author = this.ledger.authorOf(after.operation)
    const isElected = rebalancer !== null && this.ledger.processOf(rebalancer) === author
    if (!isElected) {
      this.report('S9', partition, `${what} by ${this.author(after)}, which is not elected`)
    }
  }

  private isBy(after: PartitionRecord, before: Owned): boolean {
    return this.ledger.authorOf(after.operation) === this.ledger.processOf(before.owner.session)
  }

  private author(record: PartitionRecord): string {
    return this.ledger.authorOf(record.operation) ?? 'nobody known'
  }

  private report(promise: PromiseName, partition: number, detail: string): void {
    this.box.report(promise, partition, detail)
  }
}

function idOf(partition: number, { incarnation, generation, owner }: Owned): string {
  return tokenId({ partition, incarnation, generation, session: owner.session })
}
