/**
 * What a rebalancer's map shows, as one value, and the production `GroupState` made of it once. Its parts may
 * be of different ages: an answer to its own commit runs ahead of its watch.
 */
import { encodeGroupConfig, newGroupConfig } from '../../src/core/group-config.ts'
import { GroupState } from '../../src/core/group-state.ts'
import { encodeMemberRecord } from '../../src/core/member-record.ts'
import {
  encodeOperatorMark,
  encodeRebalance,
  type RebalanceRecord,
} from '../../src/core/operator-records.ts'
import type { KeyValue } from '../../src/core/transaction.ts'
import { type Cast, rebalancerSession, sessionText } from './cast.ts'
import type { Layout } from './layout.ts'
import { TTL_MS } from './session-steps.ts'
import type { Settings } from './settings.ts'
import { KEYS } from './store.ts'
import { Table } from './table.ts'
import type { Words } from './words.ts'

export type View = {
  readonly records: readonly number[]
  readonly leases: readonly number[]
  readonly marks: readonly number[]
  readonly incarnation: number
  readonly elected: number
  readonly orders: number
}

/** Far beyond everything that is looked at here: no balancing that nobody asked for. */
export const NEVER_MS = 1_000_000_000
/** A rebalancer acts on an overdue drain two thirds of T after it saw the revoke. */
const DRAIN_DEADLINE_MS = 3000

export class Views {
  readonly orders = new Table<readonly RebalanceRecord[]>()
  private readonly views = new Table<View>()
  private readonly states = new Map<number, GroupState>()
  private readonly settings: Settings
  private readonly layout: Layout
  private readonly cast: Cast
  private readonly words: Words

  constructor(settings: Settings, layout: Layout, cast: Cast, words: Words) {
    this.settings = settings
    this.layout = layout
    this.cast = cast
    this.words = words
  }

  /** What stands in the store now. */
  current(row: Int32Array): number {
    const { layout, cast, settings } = this
    const names = cast.names.length
    return this.id({
      records: Array.from(row.subarray(layout.records, layout.records + settings.partitions)),
      leases: Array.from(row.subarray(layout.leases, layout.leases + names)),
      marks: Array.from(row.subarray(layout.marks, layout.marks + names)),
      incarnation: row[layout.incarnation] as number,
      elected: row[layout.elected] as number,
      orders: row[layout.orders] as number,
    })
  }

  id(view: View): number {
    const { records, leases, marks, incarnation, elected, orders } = view
    const key = `${records.join()}/${leases.join()}/${marks.join()}/${incarnation}/${elected}/${orders}`
    return this.views.id(key, () => view)
  }

  of(id: number): View {
    return this.views.of(id)
  }

  ordersId(orders: readonly RebalanceRecord[]): number {
    return orders.length === 0 ? 0 : this.orders.id(JSON.stringify(orders), () => orders)
  }

  listOrders(id: number): readonly RebalanceRecord[] {
    return this.orders.find(id) ?? []
  }

  state(id: number): GroupState {
    let state = this.states.get(id)
    if (state === undefined) {
      state = new GroupState(KEYS)
      state.replace(this.entries(this.views.of(id)), 1)
      this.states.set(id, state)
    }
    return state
  }

  private entries(view: View): readonly KeyValue[] {
    const { cast, settings } = this
    const { fenced, policy, partitions } = settings
    const config = newGroupConfig({
      ...{ partitions, fenced, leaseTtlMs: TTL_MS, settle: { balanceMs: NEVER_MS } },
      drain: { deadlineMs: DRAIN_DEADLINE_MS, policy },
    })
    const entries: KeyValue[] = [
      entry(KEYS.config, encodeGroupConfig(config)),
      entry(KEYS.incarnation, String(view.incarnation)),
    ]
    if (view.elected > 0) {
      const session = rebalancerSession(view.elected - 1)
      entries.push({ ...entry(KEYS.rebalancer, '{"v":1}'), session })
    }
    for (const [name, member] of cast.names.entries()) {
      const stands = view.leases[name] as number
      if (stands === 0) continue
      const session = sessionText(stands)
      const record = {
        ...{ member, session, address: '', weight: 1, capacity: null, zone: '', labels: {} },
        ...{ state: 'active' as const, versions: [1] },
      }
      entries.push({ ...entry(KEYS.member(member), encodeMemberRecord(record)), session })
      if (view.marks[name] === 0) continue
      const mark = encodeOperatorMark({ by: 'r', why: 'overdue', atMs: 0, untilMs: null })
      entries.push({ ...entry(KEYS.eviction(member), mark), session })
    }
    for (const [partition, record] of view.records.entries()) {
      const stored = this.words.stored(record)
      if (stored !== null) entries.push(entry(KEYS.partition(partition), stored.raw))
    }
    for (const order of this.listOrders(view.orders)) {
      entries.push(entry(KEYS.rebalance(order.id), encodeRebalance(order)))
    }
    return entries
  }
}

function entry(key: string, value: string): KeyValue {
  return { key, value, createRevision: 1, modRevision: 1, session: null }
}
