/**
 * The store port on etcd. The client library serves as a typed gRPC stub and as nothing else; what
 * its own leases, watchers, retries and circuit breakers would break is said in the files beside
 * this one. Transactions and watches go past the stub as well, over a channel of their own
 * (`channel.ts`): every member reads every change.
 *
 * Work, watches and leases each have their own connection and their own choice of endpoint, so that
 * a slow answer to one never holds up another. Nothing connects before the first call.
 */
import type { Transaction, TransactionResult } from '../core/transaction.ts'
import type {
  CallOptions,
  ListPage,
  Store,
  StoreReply,
  StoreStatus,
  Watch,
} from '../ports/store.ts'
import { decodeKeyValue, encodeRange } from './codec.ts'
import { type Connections, createConnections, requireLeader } from './connections.ts'
import { type EtcdStoreOptions, readEndpoints, readIdentity } from './etcd-options.ts'
import { isStaleToken } from './failure.ts'
import { closeLease, openLease, renewLease } from './lease-calls.ts'
import { callOnce } from './unary.ts'
import { openWatch } from './watch.ts'

export type { EtcdStoreOptions } from './etcd-options.ts'

/**
 * @throws TenureError `invalid-config`: no or malformed endpoints, unreadable TLS files
 * @example const store = createEtcdStore({ endpoints: ['http://127.0.0.1:2379'] })
 */
export function createEtcdStore(options: EtcdStoreOptions): Store {
  const endpoints = readEndpoints(options)
  const identity = readIdentity(options)
  const work = createConnections(endpoints, identity)
  const watching = createConnections(endpoints, identity)
  const leasing = createConnections(endpoints, identity)
  const watches = new Set<Watch>()
  let newestRevision = 0
  const seen = <T>(reply: StoreReply<T>): StoreReply<T> => {
    if (reply.ok) newestRevision = Math.max(newestRevision, reply.revision)
    return reply
  }

  return {
    async transact(transaction, callOptions) {
      return seen(await transact(work, transaction, callOptions))
    },
    async list(request, callOptions) {
      return seen(await list(work, request, callOptions))
    },
    watch(prefix, fromRevision, handler) {
      const watch = openWatch(watching, { prefix, fromRevision }, handler, (ended) =>
        watches.delete(ended),
      )
      watches.add(watch)
      return watch
    },
    openLease: (session, ttlMs, callOptions) => openLease(leasing, session, ttlMs, callOptions),
    renewLease: (session, callOptions) => renewLease(leasing, session, callOptions),
    closeLease: (session, callOptions) =>
      closeLease(leasing, session, callOptions, () => newestRevision),
    status: (callOptions) => status(work, callOptions),
    async close() {
      for (const watch of [...watches]) watch.close()
      for (const connections of [work, watching, leasing]) connections.close()
    },
  }
}

async function transact(
  connections: Connections,
  transaction: Transaction,
  options: CallOptions,
): Promise<StoreReply<TransactionResult>> {
  const send = (timeoutMs: number) =>
    callOnce(connections, { ...options, timeoutMs }, ({ channel }, grpcOptions) =>
      channel.transact(transaction, grpcOptions),
    )
  const beganMs = performance.now()
  let answer = await send(options.timeoutMs)
  // Turned down before it was proposed; the connection was given up, and the next fetches another token.
  if (!answer.ok && isStaleToken(answer.detail)) {
    answer = await send(Math.max(1, options.timeoutMs - (performance.now() - beganMs)))
  }
  if (!answer.ok) return answer
  return { ok: true, revision: answer.value.revision, value: answer.value.result }
}

async function list(
  connections: Connections,
  request: Parameters<Store['list']>[0],
  options: CallOptions,
): Promise<StoreReply<ListPage>> {
  const answer = await callOnce(connections, options, ({ client }, grpcOptions) =>
    client.kv.range(
      {
        ...encodeRange(request.prefix, request.after),
        limit: request.limit,
        ...(request.atRevision === undefined ? {} : { revision: request.atRevision }),
      },
      requireLeader(grpcOptions),
    ),
  )
  if (!answer.ok) return answer
  return {
    ok: true,
    revision: Number(answer.value.header.revision),
    value: { entries: answer.value.kvs.map(decodeKeyValue), more: answer.value.more },
  }
}

async function status(
  connections: Connections,
  options: CallOptions,
): Promise<StoreReply<StoreStatus>> {
  const answer = await callOnce(connections, options, ({ client }, grpcOptions) =>
    client.maintenance.status(grpcOptions),
  )
  if (!answer.ok) return answer
  const { errors, leader, version, dbSize, header } = answer.value
  return {
    ok: true,
    revision: Number(header.revision),
    value: {
      version,
      databaseBytes: Number(dbSize),
      leaderKnown: leader !== '0',
      // The member lists raised alarms among its errors, as `memberID:8 alarm:NOSPACE`.
      alarms: errors.flatMap((text) => /alarm:\s*(\w+)/.exec(text)?.[1] ?? []),
    },
  }
}
