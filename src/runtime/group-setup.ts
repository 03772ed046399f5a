/**
 * The first to come creates the group: settings and incarnation in one transaction that compares the
 * settings absent. Everyone else reads what stands and is told when it asks for another group identity.
 *
 * A group's first incarnation is its creation time in seconds, so that a wiped etcd starts above its
 * past. Where an incarnation stands although the settings are gone (someone deleted that one key), it is
 * kept: it may be higher than the time.
 *
 * Sending the same transaction again settles an unknown outcome: either the first landed and the second
 * reads what it wrote, or it did not and the second writes it.
 */
import type { GroupConfig, GroupSettings } from '../core/group-config.ts'
import {
  assertSameGroup,
  decodeGroupConfig,
  encodeGroupConfig,
  newGroupConfig,
} from '../core/group-config.ts'
import type { GroupName } from '../core/ids.ts'
import type { GroupKeys } from '../core/keys.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { Transaction } from '../core/transaction.ts'
import type { Clock } from '../ports/clock.ts'
import type { Store } from '../ports/store.ts'

export type EnsureGroupOptions = {
  readonly store: Store
  readonly keys: GroupKeys
  readonly clock: Clock
  readonly group: GroupName
  /** For a new group; an existing one must agree on partitions, TTL and fenced. */
  readonly settings: GroupSettings
  /** A new group's incarnation is above this, whatever the clock says. Default 0. */
  readonly incarnationAbove?: number
  /** How long to try while the store cannot be reached. Default 30 s. */
  readonly deadlineMs?: number
}

const DEADLINE_MS = 30_000
const CALL_TIMEOUT_MS = 3000
const RETRY_FIRST_MS = 100
const RETRY_MAX_MS = 2000

/**
 * The group's settings, once they stand in the store.
 * @throws TenureError `invalid-config` for settings out of range, `config-mismatch` naming both values,
 * `store-refused` when the store will not have it, `store-unreachable` after `deadlineMs`.
 */
export async function ensureGroup(options: EnsureGroupOptions): Promise<GroupConfig> {
  const { store, clock, settings } = options
  const fresh = newGroupConfig(settings)
  const transaction = creation(options, fresh)
  const endMs = clock.monotonicMs() + (options.deadlineMs ?? DEADLINE_MS)
  for (let retryMs = RETRY_FIRST_MS; ; retryMs = Math.min(RETRY_MAX_MS, retryMs * 2)) {
    const leftMs = endMs - clock.monotonicMs()
    const timeoutMs = Math.max(1, Math.min(CALL_TIMEOUT_MS, leftMs))
    const reply = await store.transact(transaction, { timeoutMs })
    if (reply.ok) {
      if (reply.value.succeeded) return fresh
      const got = reply.value.results[1]
      // Absent although the compare found it present: another call's view; look again.
      if (got?.type === 'get' && got.found !== null) {
        const stands = decodeGroupConfig(got.found.value)
        assertSameGroup(settings, stands)
        return stands
      }
    } else if (reply.reason === 'refused') {
      throw createTenureError('store-refused', `creating group ${options.group}: ${reply.detail}`)
    }
    if (clock.monotonicMs() + retryMs >= endMs) {
      const detail = reply.ok ? 'the settings could not be read' : reply.detail
      throw createTenureError(
        'store-unreachable',
        `group ${options.group} could not be opened: ${detail}`,
      )
    }
    await pause(clock, retryMs)
  }
}

function creation(
  { keys, clock, incarnationAbove = 0 }: EnsureGroupOptions,
  config: GroupConfig,
): Transaction {
  const incarnation = String(Math.max(Math.floor(clock.wallMs() / 1000), incarnationAbove + 1))
  return {
    compare: [{ type: 'absent', key: keys.config }],
    success: [
      { type: 'put', key: keys.config, value: encodeGroupConfig(config) },
      {
        type: 'transaction',
        compare: [{ type: 'absent', key: keys.incarnation }],
        success: [{ type: 'put', key: keys.incarnation, value: incarnation }],
        failure: [],
      },
    ],
    // The delete makes this branch a writing one, so that what it reads cannot be stale.
    failure: [
      { type: 'delete', key: keys.never },
      { type: 'get', key: keys.config },
    ],
  }
}

function pause(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.schedule(delayMs, resolve)
  })
}
