/**
 * etcd by raw gRPC, for the limit: requests made ready beforehand, replies not looked at, a watch that
 * counts. The connection is set up as Tenure's own (`etcd/connections.ts`), so that both pay the same.
 */
import type { Etcd3, ICompare, IRequestOp, ITxnRequest } from 'etcd3'
import type { SessionId } from '../core/ids.ts'
import type { Compare, Operation, Transaction } from '../core/transaction.ts'
import { encodeLease, encodeRange } from '../etcd/codec.ts'
import { createConnections } from '../etcd/connections.ts'
import { type EtcdStoreOptions, readEndpoints, readIdentity } from '../etcd/etcd-options.ts'
import { stubTransaction } from './raw-transaction.ts'
import { openRawStream, type RawEvents, revisionOfEvent, type Wire } from './raw-watch.ts'

/** A transaction as the wire takes it. */
export type RawRequest = {
  readonly compare: readonly (ICompare | Compare)[]
  readonly success: readonly (IRequestOp | Operation)[]
  readonly failure: readonly (IRequestOp | Operation)[]
}

export type RawEtcd = {
  prepare(transaction: Transaction): RawRequest
  /** @throws when etcd refuses, or a compare of the outermost transaction fails. */
  send(request: RawRequest): Promise<void>
  /** Resolves when the watch stands; returns how to end it. */
  watch(prefix: string, events: (events: RawEvents) => void): Promise<() => void>
  /** A key under a lease of its own; returns how to end the lease. */
  openLease(session: SessionId, ttlS: number): Promise<() => Promise<void>>
  /** Deletes everything under the prefix; compacts when the servers are this run's own. */
  clear(prefix: string, compact: boolean): Promise<void>
  version(): Promise<{ readonly version: string; readonly usedBytes: number }>
  close(): void
}

/** Slow servers are measured, not given up. */
const CALL_TIMEOUT_MS = 60_000
const deadline = () => ({ deadline: Date.now() + CALL_TIMEOUT_MS })

export function createRawEtcd(options: EtcdStoreOptions, wire: Wire = 'stub'): RawEtcd {
  const connections = createConnections(readEndpoints(options), readIdentity(options))
  const connection = () => {
    const current = connections.current()
    if (current === null) throw new Error('closed')
    return current
  }
  const client = (): Etcd3 => connection().client
  return {
    prepare: (transaction) => (wire === 'stub' ? stubTransaction(transaction) : transaction),
    async send(request) {
      const succeeded =
        wire === 'stub'
          ? (await client().kv.txn(request as ITxnRequest, deadline())).succeeded
          : (await connection().channel.transact(request as Transaction, deadline())).result
              .succeeded
      if (!succeeded) throw new Error('a compare of the limit failed')
    },
    async watch(prefix, events) {
      let end = () => {}
      let isOver = false
      let next = 0
      // A busy machine breaks connections: the watch goes on after the last event it had.
      const open = async (): Promise<void> => {
        const stream = await openRawStream(connection(), wire, prefix, next)
        end = stream.end
        const stands = new Promise<void>((resolve) => {
          stream.onResponse((response) => {
            if (response.created) {
              if (next === 0) next = response.revision + 1
              resolve()
            }
            const last = response.events.at(-1)
            if (last === undefined || isOver) return
            next = revisionOfEvent(last) + 1
            events(response.events)
          })
        })
        let isBroken = false
        stream.onError(() => {
          if (isOver || isBroken) return
          isBroken = true
          void open().catch(() => {})
        })
        await stands
      }
      await open()
      return () => {
        isOver = true
        end()
      }
    },
    async openLease(session, ttlS) {
      const id = encodeLease(session)
      await client().leaseClient.leaseGrant({ ID: id, TTL: ttlS }, deadline())
      return async () => {
        await client().leaseClient.leaseRevoke({ ID: id }, deadline())
      }
    },
    async clear(prefix, compact) {
      const reply = await client().kv.deleteRange(encodeRange(prefix), deadline())
      if (!compact) return
      await client().kv.compact({ revision: reply.header.revision, physical: true }, deadline())
    },
    async version() {
      const { version, dbSize, dbSizeInUse } = await client().maintenance.status(deadline())
      return { version, usedBytes: Number(dbSizeInUse ?? dbSize) }
    },
    close: () => connections.close(),
  }
}
