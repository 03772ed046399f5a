/**
 * The etcd fence, right (null) or broken in one way, on a real server. The requests are those of the real
 * fence, changed on their way:
 *
 *   check-outside-transaction   the compare in a transaction of its own, the put after it
 *   equal-generation-accepted   a seal compares with the whole token, not with its position alone, so that
 *                               of two sessions at one generation the higher gets through
 *   lost-on-restart             the fence's key hangs on its owner's lease, and goes when that is closed
 *   no-seal                     seal does nothing, and the effect's transaction raises the mark by itself
 */
import type { Etcd3, ICompare, IRequestOp, ITxnRequest } from 'etcd3'
import { createEtcdFence, type EtcdEffect, type EtcdFenceClient } from '../../src/fence/etcd.ts'
import type { Fence } from '../../src/fence/fence.ts'
import { type EffectStep, type FenceResource, ownerInProcess } from '../../src/testing/index.ts'
import { connectEtcd } from '../support/etcd-client.ts'
import { type CleanUp, startEtcd } from '../support/servers.ts'
import { checkedOutside } from './checked-outside.ts'
import { entryOf, readEntry } from './list-entries.ts'
import type { Break } from './memory-resource.ts'

const GROUP = { group: 'conformance' }
const LEASE_TTL_S = 120
/** etcd's own numbers: a compare of values, for less. */
const VALUE = 3
const LESS = 2

type Put = { readonly effect: EtcdEffect; readonly step: EffectStep }

export async function brokenEtcd(cleanUp: CleanUp, broken: Break | null): Promise<FenceResource> {
  const server = await startEtcd(cleanUp)
  const etcd = connectEtcd(cleanUp, server.endpoint)
  return {
    async owner() {
      const own = connectEtcd(cleanUp, server.endpoint)
      const lease = await own.leaseClient.leaseGrant({ TTL: LEASE_TTL_S })
      return ownerInProcess({
        fence: fenceOf(own, lease.ID, broken),
        effectOf: (token, number, step): Put => {
          const key = Buffer.from(`/effects/${token.partition}/${number}`)
          const value = Buffer.from(entryOf(token, number))
          return { effect: { success: [{ request_put: { key, value } }] }, step }
        },
        close: async () => void (await own.leaseClient.leaseRevoke({ ID: lease.ID })),
      })
    },
    async applied(partition) {
      const all = etcd.getAll().prefix(`/effects/${partition}/`)
      return Object.values(await all.sort('Create', 'Ascend').strings()).map(readEntry)
    },
    stops: broken === 'check-outside-transaction' ? ['before', 'checked'] : ['before'],
    async restart() {
      await server.kill()
      await server.restart()
    },
  }
}

function fenceOf(etcd: Etcd3, lease: string, broken: Break | null): Fence<Put, unknown> {
  switch (broken) {
    case null:
      return putting(etcd)
    case 'check-outside-transaction': {
      const right = createEtcdFence(etcd, GROUP)
      return checkedOutside(right, { success: [] }, async (_token, { effect, step }: Put) => {
        await step('checked')
        await etcd.kv.txn({ compare: [], success: [...effect.success], failure: [] })
      })
    }
    case 'equal-generation-accepted':
      return putting(changing(etcd, compareWholeTokens))
    case 'lost-on-restart':
      return putting(changing(etcd, (request) => underLease(request, lease)))
    case 'no-seal':
      return {
        seal: async () => ({ ok: true }),
        async guard(token, { effect }) {
          const raising = changing(etcd, (request) => withEffect(request, effect.success))
          const outcome = await createEtcdFence(raising, GROUP).seal(token)
          return outcome.ok ? { ok: true, value: null } : outcome
        },
      }
    default:
      return broken satisfies never
  }
}

function putting(client: EtcdFenceClient): Fence<Put, unknown> {
  const fence = createEtcdFence(client, GROUP)
  return { seal: fence.seal, guard: (token, { effect }) => fence.guard(token, effect) }
}

function changing(etcd: Etcd3, change: (request: ITxnRequest) => ITxnRequest): EtcdFenceClient {
  return {
    maintenance: etcd.maintenance,
    kv: { txn: (request) => etcd.kv.txn(change(request)) },
  }
}

/** A seal's outermost put has the whole token. */
function compareWholeTokens(request: ITxnRequest): ITxnRequest {
  const whole = request.success?.[0]?.request_put?.value
  if (whole === undefined) return request
  const compareWhole = (compare: ICompare): ICompare =>
    compare.target === VALUE && compare.result === LESS ? { ...compare, value: whole } : compare
  return mapTransactions(request, (one) => ({
    ...one,
    compare: (one.compare ?? []).map(compareWhole),
  }))
}

function underLease(request: ITxnRequest, lease: string): ITxnRequest {
  const bind = (operation: IRequestOp): IRequestOp => {
    const put = operation.request_put
    const isFence = put?.key?.toString().startsWith('/tenure-fence/') === true
    return isFence ? { request_put: { ...put, lease } } : operation
  }
  return mapTransactions(request, (one) => ({ ...one, success: (one.success ?? []).map(bind) }))
}

function withEffect(request: ITxnRequest, effect: readonly IRequestOp[]): ITxnRequest {
  return mapTransactions(request, (one) => ({
    ...one,
    success: [...(one.success ?? []), ...effect],
  }))
}

/** Changes the transaction and those inside it, where it fails. */
function mapTransactions(
  request: ITxnRequest,
  change: (one: ITxnRequest) => ITxnRequest,
): ITxnRequest {
  const failure = (request.failure ?? []).map((operation): IRequestOp => {
    const inner = operation.request_txn
    return inner === undefined ? operation : { request_txn: mapTransactions(inner, change) }
  })
  return change({ ...request, failure })
}
