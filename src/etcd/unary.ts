/**
 * One request, one reply, one timeout: the shape of every call that is not a stream. Retries nothing.
 */
import type { CallOptions as GrpcCallOptions } from '@grpc/grpc-js'
import type { CallOptions, StoreFailure } from '../ports/store.ts'
import type { Connection, Connections } from './connections.ts'
import { type CallFailure, classifyError, storeClosed, timedOut } from './failure.ts'

/** The transport's own deadline ends a little earlier, since it knows whether the call was sent. */
const DEADLINE_LEAD_MS = 10

export type Answer<T> = { readonly ok: true; readonly value: T } | StoreFailure

/** Ends within the timeout by the monotonic clock, whatever the wall clock or the library does. */
export async function callOnce<T>(
  connections: Connections,
  options: CallOptions,
  send: (connection: Connection, options: GrpcCallOptions) => Promise<T>,
): Promise<Answer<T>> {
  const connection = connections.current()
  if (connection === null) return plain(storeClosed())
  const answer = await new Promise<{ ok: true; value: T } | CallFailure>((resolve) => {
    const timer = setTimeout(() => resolve(timedOut(options.timeoutMs)), options.timeoutMs)
    const deadline = Date.now() + Math.max(1, options.timeoutMs - DEADLINE_LEAD_MS)
    send(connection, { deadline }).then(
      (value) => {
        clearTimeout(timer)
        resolve({ ok: true, value })
      },
      (error: unknown) => {
        clearTimeout(timer)
        resolve(classifyError(error))
      },
    )
  })
  return answer.ok ? answer : settleFailure(connections, connection, answer)
}

/** Retires the connection where the failure asks for it, and hands on the port's part of it. */
export function settleFailure(
  connections: Connections,
  connection: Connection,
  failure: CallFailure,
): StoreFailure {
  if (failure.connectionSuspect) connections.retire(connection)
  return plain(failure)
}

export function plain(failure: CallFailure): StoreFailure {
  return { ok: false, reason: failure.reason, detail: failure.detail }
}
