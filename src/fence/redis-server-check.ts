/**
 * What a client and its server must be like for a fence to hold, asked once before the first use.
 */
import type { Cluster, Redis } from 'ioredis'
import { createTenureError, type TenureError } from '../core/tenure-error.ts'

/** From 5.0 on a script's *writes* are replicated and logged, not the script. */
const MAJOR_MIN = 5
/** Policies that may throw away a key without expiry, the fence among them. */
const EVICTS_ALL = /^allkeys-/

/** Whether a client may send a command again when its connection breaks before the answer. */
export type Resends = 'refuse' | 'accept'

/** @throws TenureError `invalid-config` that names the client's option to change. */
export function checkClient(client: Redis | Cluster, resends: Resends): void {
  const options: Record<string, unknown> = { ...client.options }
  const ofNode = (options['redisOptions'] ?? {}) as Record<string, unknown>
  if (options['keyPrefix'] || ofNode['keyPrefix']) {
    throw invalid('the Redis client has a keyPrefix, which scripts do not see: use one without')
  }
  if (resends === 'accept') return
  if (client.isCluster) {
    if (
      options['retryDelayOnFailover'] !== 0 ||
      ofNode['autoResendUnfulfilledCommands'] !== false
    ) {
      throw resendsTwice(
        'retryDelayOnFailover: 0 and redisOptions: { autoResendUnfulfilledCommands: false }',
      )
    }
  } else if (options['autoResendUnfulfilledCommands'] !== false) {
    throw resendsTwice('autoResendUnfulfilledCommands: false')
  }
}

/** @throws TenureError `fence-not-ready`, naming the remedy. */
export async function checkServer(client: Redis | Cluster): Promise<void> {
  // Any of a cluster's primaries may hold a partition's fence; INFO of the cluster is that of one node.
  const primaries = client.isCluster ? (client as Cluster).nodes('master') : []
  const nodes = primaries.length > 0 ? primaries : [client]
  await Promise.all(nodes.map(async (node) => checkInfo(await node.info())))
}

function checkInfo(info: string): void {
  const facts = readInfo(info)
  const version = facts.get('redis_version') ?? ''
  if (!(Number.parseInt(version, 10) >= MAJOR_MIN)) {
    throw notReady(
      `Redis ${version || 'of unknown version'} is too old for a fence: ${MAJOR_MIN}.0 or later is needed`,
    )
  }
  const policy = facts.get('maxmemory_policy') ?? ''
  if (EVICTS_ALL.test(policy)) {
    throw notReady(
      `Redis may evict the fence (maxmemory-policy ${policy}): set noeviction or volatile-lru`,
    )
  }
}

function readInfo(text: string): ReadonlyMap<string, string> {
  const pairs = text.split(/\r?\n/).map((line) => line.split(':', 2))
  return new Map(pairs.map(([name = '', value = '']) => [name, value]))
}

function resendsTwice(options: string): TenureError {
  return invalid(
    `the Redis client may send an effect twice when its connection breaks: give it ${options}, or say resends: 'accept' where every effect may run twice`,
  )
}

function invalid(message: string): TenureError {
  return createTenureError('invalid-config', message)
}

function notReady(message: string): TenureError {
  return createTenureError('fence-not-ready', message)
}
