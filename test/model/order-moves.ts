/** Operators' orders to rebalancers that run the production machine: moves, and their cancelling. */
import type { MemberName, PartitionId } from '../../src/core/ids.ts'
import type { RebalanceRecord } from '../../src/core/operator-records.ts'
import { partitionsOf } from './machine-moves.ts'
import type { Model } from './model.ts'

/** An operator orders a move, or takes an order back. */
export function orderMoves(model: Model): void {
  if (!model.has('orders')) return
  const orders = model.views.listOrders(model.from[model.layout.orders] as number)
  for (const partition of partitionsOf(model)) {
    for (const to of model.cast.names) orderMove(model, orders, partition, to)
  }
  for (const order of orders) {
    if (order.state !== 'requested' && order.state !== 'running') continue
    model.begin(() => `operator: cancels ${order.id}`)
    model.spend('orders')
    const cancelled = orders.map((one) =>
      one.id === order.id ? { ...one, state: 'cancelling' as const } : one,
    )
    model.row[model.layout.orders] = model.views.ordersId(cancelled)
    model.done(false)
  }
}

function orderMove(
  model: Model,
  orders: readonly RebalanceRecord[],
  partition: PartitionId,
  to: MemberName,
): void {
  const order: RebalanceRecord = {
    ...{ id: `o${orders.length}`, kind: { type: 'move', partition, to }, state: 'requested' },
    ...{ reason: '', by: 'o', planned: null, moved: 0, requestedAtMs: orders.length },
    ...{ finishedAtMs: null, note: '' },
  }
  model.begin(() => `operator: orders p${partition} to ${to}`)
  model.spend('orders')
  model.row[model.layout.orders] = model.views.ordersId([...orders, order])
  model.done(false)
}
