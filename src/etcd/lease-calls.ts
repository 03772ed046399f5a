/**
 * Leases: opened, renewed, closed. They travel over connections of their own, so that no queue of
 * heavy work ever delays a renewal.
 *
 * A renewal is one short stream with one message and one answer. Nothing is shared between renewals,
 * so a stream that hangs harms the one renewal that it carries; when that times out, its connection
 * is retired and the next renewal starts on a new one. A half-open connection therefore costs one
 * renewal, not the lease.
 */
import type { CallOptions as GrpcCallOptions } from '@grpc/grpc-js'
import type { Etcd3, ILeaseKeepAliveResponse } from 'etcd3'
import type { SessionId } from '../core/ids.ts'
import type { CallOptions, StoreReply } from '../ports/store.ts'
import { encodeLease } from './codec.ts'
import { type Connections, requireLeader } from './connections.ts'
import { callOnce } from './unary.ts'

type Ttl = { readonly ttlMs: number }

export async function openLease(
  connections: Connections,
  session: SessionId,
  ttlMs: number,
  options: CallOptions,
): Promise<StoreReply<Ttl>> {
  const answer = await callOnce(connections, options, ({ client }, grpcOptions) =>
    client.leaseClient.leaseGrant(
      { ID: encodeLease(session), TTL: Math.ceil(ttlMs / 1000) },
      requireLeader(grpcOptions),
    ),
  )
  if (!answer.ok) return answer
  const { error, header, TTL } = answer.value
  if (error !== '') return { ok: false, reason: 'refused', detail: error }
  return { ok: true, revision: Number(header.revision), value: { ttlMs: Number(TTL) * 1000 } }
}

export async function renewLease(
  connections: Connections,
  session: SessionId,
  options: CallOptions,
): Promise<StoreReply<Ttl>> {
  const answer = await callOnce(connections, options, ({ client }, grpcOptions) =>
    renewOnce(client, encodeLease(session), requireLeader(grpcOptions)),
  )
  if (!answer.ok) return answer
  const { header, TTL } = answer.value
  return {
    ok: true,
    revision: Number(header.revision),
    value: { ttlMs: Math.max(0, Number(TTL) * 1000) },
  }
}

/** @param revisionNow stands in where the server answers that the lease was gone, without a header */
export async function closeLease(
  connections: Connections,
  session: SessionId,
  options: CallOptions,
  revisionNow: () => number,
): Promise<StoreReply<null>> {
  const answer = await callOnce(connections, options, ({ client }, grpcOptions) =>
    client.leaseClient.leaseRevoke({ ID: encodeLease(session) }, requireLeader(grpcOptions)),
  )
  if (answer.ok) return { ok: true, revision: Number(answer.value.header.revision), value: null }
  if (answer.reason === 'refused' && answer.detail.includes('requested lease not found')) {
    return { ok: true, revision: revisionNow(), value: null }
  }
  return answer
}

async function renewOnce(
  client: Etcd3,
  lease: string,
  options: GrpcCallOptions,
): Promise<ILeaseKeepAliveResponse> {
  const stream = await client.leaseClient.leaseKeepAlive(options)
  return new Promise((resolve, reject) => {
    stream.on('data', (response: ILeaseKeepAliveResponse) => {
      resolve(response)
      stream.end()
    })
    // After the answer these find the promise settled. The deadline ends the stream in any case.
    stream.on('error', reject)
    stream.on('end', () => reject(new Error('the server ended the renewal without an answer')))
    stream.write({ ID: lease })
  })
}
