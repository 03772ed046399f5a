/**
 * The demo's protected resource, as data: one fence per partition, one checkpoint, and the effects.
 *
 * A token is refused below the highest seen, and at the highest when it belongs to another session. An
 * effect is applied only above the checkpoint, so each message of a partition is applied exactly once
 * whoever delivers it again. `apply` is one synchronous step: check, effect and checkpoint cannot come
 * apart (S3).
 */
import type { FenceToken, Sealed } from '../core/fence.ts'
import { decideEffect, decideSeal } from '../core/fence.ts'
import type { PartitionId } from '../core/ids.ts'

export type LedgerToken = FenceToken

type Account = { fence: Sealed | null; checkpoint: number; applied: number }

export type SealOutcome =
  | { readonly ok: true; readonly checkpoint: number }
  | { readonly ok: false; readonly highest: Sealed }

export type ApplyOutcome =
  | { readonly outcome: 'applied' | 'already' }
  | { readonly outcome: 'refused'; readonly highest: Sealed | null }

export class LedgerBook {
  private readonly accounts = new Map<PartitionId, Account>()

  /** Raises the fence to the token, unless a newer one is there. */
  seal(token: LedgerToken): SealOutcome {
    const account = this.account(token.partition)
    const highest = account.fence
    if (highest !== null && decideSeal(highest, token) === 'refuse') return { ok: false, highest }
    const { incarnation, generation, session } = token
    account.fence = { incarnation, generation, session }
    return { ok: true, checkpoint: account.checkpoint }
  }

  /** True when an effect under the token would be refused now. */
  refuses(token: LedgerToken): boolean {
    return decideEffect(this.account(token.partition).fence, token) !== 'accept'
  }

  /** Applies the message unless the token is not the sealed one or the message was applied before. */
  apply(token: LedgerToken, sequence: number): ApplyOutcome {
    const account = this.account(token.partition)
    if (this.refuses(token)) return { outcome: 'refused', highest: account.fence }
    if (sequence <= account.checkpoint) return { outcome: 'already' }
    account.checkpoint = sequence
    account.applied += 1
    return { outcome: 'applied' }
  }

  highest(partition: PartitionId): Sealed | null {
    return this.account(partition).fence
  }

  /** Sequence of the last message applied, 0 before the first. */
  checkpoint(partition: PartitionId): number {
    return this.account(partition).checkpoint
  }

  /** Effects over all partitions. */
  get applied(): number {
    let applied = 0
    for (const account of this.accounts.values()) applied += account.applied
    return applied
  }

  private account(partition: PartitionId): Account {
    const known = this.accounts.get(partition)
    if (known !== undefined) return known
    const account: Account = { fence: null, checkpoint: 0, applied: 0 }
    this.accounts.set(partition, account)
    return account
  }
}
