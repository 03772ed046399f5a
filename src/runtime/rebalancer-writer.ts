/**
 * Sends what a rebalancer writes besides partitions, and closes the leases of the evicted. Nothing is
 * retried here: each answer, whatever it is, goes back to the machine, which looks at the map again.
 */
import type { GroupName, SessionId } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import type { RecordWrite } from '../core/rebalancer-writes.ts'
import { writeTransaction } from '../core/rebalancer-writes.ts'
import type { Transaction } from '../core/transaction.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { Mirror, MirrorListener } from './mirror.ts'

type WriterOptions = {
  readonly group: GroupName
  readonly keys: GroupKeys
  readonly store: Store
  readonly telemetry: Telemetry
  readonly mirror: Mirror
  readonly teller: MirrorListener
  /** The rebalancer's own session, which every write compares. */
  readonly session: SessionId
  readonly timeoutMs: number
  readonly wrote: (slot: string, inView: boolean) => void
  /** The election is somebody else's, or nobody's. */
  readonly deposed: () => void
}

export class RebalancerWriter {
  private readonly options: WriterOptions

  constructor(options: WriterOptions) {
    this.options = options
  }

  async write(slot: string, write: RecordWrite): Promise<void> {
    const { keys, store, session, timeoutMs, wrote, deposed } = this.options
    const transaction = writeTransaction(keys, session, write)
    const reply = await store.transact(transaction, { timeoutMs })
    if (!reply.ok) {
      wrote(slot, false)
      return
    }
    if (reply.value.succeeded) {
      this.report(write)
      wrote(slot, this.learn(transaction, reply.revision))
      return
    }
    const got = reply.value.results[0]
    if (got?.type === 'get' && got.found?.session !== session) deposed()
    wrote(slot, false)
  }

  /** Harmless when it comes late or twice: a lease has one life, and so has the mark under it. */
  async closeLease(slot: string, session: SessionId): Promise<void> {
    const { store, timeoutMs, wrote } = this.options
    await store.closeLease(session, { timeoutMs })
    wrote(slot, false)
  }

  /** True when the mirror now shows the write. Deletions it hears of from its watch alone. */
  private learn({ success }: Transaction, revision: number): boolean {
    const { mirror, teller } = this.options
    const [first] = success
    if (first?.type !== 'put') return false
    const { key, value } = first
    const session = first.session ?? null
    mirror.learn({ key, value, createRevision: 0, modRevision: revision, session }, teller)
    return mirror.state.modRevision(key) >= revision
  }

  private report(write: RecordWrite): void {
    if (write.type !== 'evict') return
    const { group, telemetry } = this.options
    const { member, mark } = write
    telemetry.record({ type: 'eviction-marked', group, member, why: mark.why })
  }
}
