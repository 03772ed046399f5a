/**
 * The store's side of the model: what the transactions that production builds compare, and what they do.
 * Each commit goes through `commit-batch.ts`, each write of a rebalancer through `rebalancer-writes.ts`;
 * their compares are looked up once per commit and then read off the row.
 */
import { commitBatch } from '../../src/core/commit-batch.ts'
import type { GroupName } from '../../src/core/ids.ts'
import { DEFAULT_KEY_PREFIX, groupKeys, keySubject } from '../../src/core/keys.ts'
import { encodeRebalance, type RebalanceRecord } from '../../src/core/operator-records.ts'
import type { Compare } from '../../src/core/transaction.ts'
import type { Cast } from './cast.ts'
import { GROUP, rebalancerSession, sessionOf } from './cast.ts'
import type { Layout } from './layout.ts'
import type { Words } from './words.ts'

export const KEYS = groupKeys(DEFAULT_KEY_PREFIX, GROUP as GroupName)

export type Holds = (row: Int32Array) => boolean

/** What a commit compares: once for its whole batch, and for its own record. */
type Compiled = { readonly shared: readonly Holds[]; readonly own: readonly Holds[] }

/** `refused-all`: a requirement of the whole batch failed. */
export type Verdict = 'done' | 'refused' | 'refused-all'

export class Store {
  private readonly layout: Layout
  private readonly words: Words
  private readonly cast: Cast
  private readonly ordersOf: (orders: number) => readonly RebalanceRecord[]
  private readonly compiled = new Map<number, Compiled>()

  constructor(
    layout: Layout,
    words: Words,
    cast: Cast,
    ordersOf: (orders: number) => readonly RebalanceRecord[],
  ) {
    this.ordersOf = ordersOf
    this.layout = layout
    this.words = words
    this.cast = cast
  }

  /** What the store would say to the commit. */
  judge(row: Int32Array, commit: number): Verdict {
    let compiled = this.compiled.get(commit)
    if (compiled === undefined) {
      compiled = this.compile(commit)
      this.compiled.set(commit, compiled)
    }
    if (!compiled.shared.every((holds) => holds(row))) return 'refused-all'
    return compiled.own.every((holds) => holds(row)) ? 'done' : 'refused'
  }

  /** Whether all of these hold, asked of a row later. */
  all(compares: readonly Compare[]): Holds {
    const held = compares.map((compare) => this.compare(compare))
    return (row) => held.every((holds) => holds(row))
  }

  private compile(id: number): Compiled {
    const { transaction } = commitBatch(KEYS, [this.words.commits.of(id).commit])
    const [nested] = transaction.success
    if (nested?.type !== 'transaction') throw new Error('a commit is not a nested transaction')
    return {
      shared: transaction.compare.map((compare) => this.compare(compare)),
      own: nested.compare.map((compare) => this.compare(compare)),
    }
  }

  private compare(compare: Compare): Holds {
    const subject = keySubject(KEYS, compare.key)
    switch (subject.type) {
      case 'partition':
        return this.comparePartition(compare, subject.partition)
      case 'member': {
        const at = this.layout.leases + this.cast.nameIndex(subject.member)
        return leaseCompare(compare, (row) => row[at] as number)
      }
      case 'rebalancer': {
        const at = this.layout.elected
        return leaseCompare(compare, (row) => {
          const elected = row[at] as number
          return elected === 0 ? 0 : sessionOf(rebalancerSession(elected - 1))
        })
      }
      case 'incarnation': {
        const at = this.layout.incarnation
        if (compare.type !== 'value-equals') throw unexpected(compare)
        return (row) => String(row[at]) === compare.value
      }
      case 'eviction': {
        const at = this.layout.marks + this.cast.nameIndex(subject.member)
        return presence(compare, (row) => row[at] !== 0)
      }
      case 'cordon':
      case 'disabled-group':
      case 'disabled-partition':
      case 'freeze':
        // No operator sets these here.
        return presence(compare, () => false)
      case 'rebalance':
        return this.compareOrder(compare, subject.id)
      case 'config':
        throw unexpected(compare)
      case 'other':
        // The key that never exists.
        return leaseCompare(compare, () => 0)
      default:
        return subject satisfies never
    }
  }

  private compareOrder(compare: Compare, id: string): Holds {
    if (compare.type !== 'value-equals') throw unexpected(compare)
    const { value } = compare
    return (row) => {
      const order = this.ordersOf(row[this.layout.orders] as number).find((one) => one.id === id)
      return order !== undefined && encodeRebalance(order) === value
    }
  }

  private comparePartition(compare: Compare, partition: number): Holds {
    const at = this.layout.records + partition
    if (compare.type !== 'value-equals') return presence(compare, (row) => row[at] !== 0)
    const { value } = compare
    return (row) => this.words.stored(row[at] as number)?.raw === value
  }
}

function leaseCompare(compare: Compare, read: (row: Int32Array) => number): Holds {
  switch (compare.type) {
    case 'lease-equals': {
      const session = sessionOf(compare.session)
      return (row) => read(row) === session
    }
    case 'lease-differs': {
      const session = sessionOf(compare.session)
      return (row) => read(row) !== session
    }
    case 'absent':
    case 'present':
      return presence(compare, (row) => read(row) !== 0)
    case 'value-equals':
      throw unexpected(compare)
    default:
      return compare satisfies never
  }
}

function presence(compare: Compare, isPresent: Holds): Holds {
  if (compare.type === 'absent') return (row) => !isPresent(row)
  if (compare.type === 'present') return isPresent
  throw unexpected(compare)
}

function unexpected(compare: Compare): Error {
  return new Error(`the model has no such compare: ${JSON.stringify(compare)}`)
}
