/** The operators' HTTP interface of one `serve` process, as the tests use it. */
import assert from 'node:assert/strict'
import type { RebalanceRecord } from '../../../src/core/operator-records.ts'

export type ServeApi = {
  /** Of the group. */
  readonly url: string
  get(path: string): Promise<Record<string, unknown>>
  /** Sends a change; throws with the problem for any status that is not 2xx. */
  change(method: 'POST' | 'PUT' | 'DELETE' | 'PATCH', path: string, body?: object): Promise<unknown>
  move(partition: number, to: string): Promise<RebalanceRecord>
  rebalance(id: string): Promise<RebalanceRecord>
  /** The member session that leads, as this process sees it; null: none. */
  leader(): Promise<string | null>
}

const TIMEOUT_MS = 10_000

export function createServeApi(url: string): ServeApi {
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const reply = await fetch(`${url}${path}`, {
      method,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const text = await reply.text()
    assert.ok(reply.ok, `${method} ${path}: ${reply.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
  const api: ServeApi = {
    url,
    get: async (path) => (await call('GET', path)) as Record<string, unknown>,
    change: call,
    move: async (partition, to) =>
      (await call('POST', `/partitions/${partition}/move`, { to })) as RebalanceRecord,
    rebalance: async (id) =>
      (await api.get(`/rebalances/${id}`))['rebalance'] as unknown as RebalanceRecord,
    leader: async () => (await api.get(''))['rebalancer'] as string | null,
  }
  return api
}
