/**
 * The fence of data in etcd: a key beside the user's own that holds just the sortable token, checked in
 * the user's own transaction.
 *
 *   <prefix><group>/<partition, 6 digits>    <incarnation, 12 hex>.<generation, 12 hex>.<session>
 *
 *   seal     absent: put | equal to mine: keep | less than my `incarnation.generation` alone: put | refuse
 *   effect   equal to mine: the user's transaction, nested if it compares | nothing, and what the key holds
 *
 * Comparing with the prefix rather than with the whole token is what refuses an equal generation of another
 * session: `g.aa` and `g.bb` are both above `g`. One request each, so nothing comes in between.
 *
 * The client must not retry: by default etcd3 sends a transaction up to four times when a connection
 * breaks, and one that was executed, then repeated, may report that the user's compare failed or add twice.
 *
 *   import { noop } from 'cockatiel'
 *   new Etcd3({ hosts, faultHandling: { global: noop, host: () => noop } })
 *
 * A failed call may have been executed (`details.outcome`): read back before you repeat it. A restored etcd
 * goes back with fence and data alike; `tenure incarnation raise` lifts the tokens above what was granted.
 *
 * Not promised: anything about writes that go around the fence, or a key of the fence that others write.
 */
import type { Etcd3, ICompare, IRequestOp, IResponseOp, ITxnRequest, ITxnResponse } from 'etcd3'
import { decideEffect, type Sealed } from '../core/fence.ts'
import { groupName } from '../core/ids.ts'
import { createTenureError, isTenureError, type TenureError } from '../core/tenure-error.ts'
import { sortableToken, type Token } from '../core/token.ts'
import { checkTokenOf } from '../core/token-text.ts'
import {
  DEFAULT_FENCE_PREFIX,
  fenceKey,
  isAbsent,
  readSortable,
  valueEquals,
  valueIsBelow,
  writesKey,
} from './etcd-operations.ts'
import { badEffect, type Fence } from './fence.ts'

/** The client, or anything that has these two calls. */
export type EtcdFenceClient = {
  readonly kv: Pick<Etcd3['kv'], 'txn'>
  readonly maintenance: Pick<Etcd3['maintenance'], 'status'>
}

/** A transaction of the user; it must leave the fence's key alone. */
export type EtcdEffect = {
  readonly compare?: readonly ICompare[]
  readonly success: readonly IRequestOp[]
  readonly failure?: readonly IRequestOp[]
}

/** What etcd answered to the user's transaction. */
export type EtcdResult = {
  /** False: the token was right, the effect's own compare was not. */
  readonly succeeded: boolean
  readonly responses: readonly IResponseOp[]
}

export type EtcdFenceOptions = {
  /** Tokens of another group are refused. */
  readonly group: string
  /** Before the group's name in the fence's keys [`/tenure-fence/`]. */
  readonly prefix?: string
}

/** Transactions inside transactions came with it. */
const VERSION_MIN = [3, 3] as const
/** `incarnation.generation` of the sortable token, before its session. */
const POSITION_LENGTH = 25
/** Answers after which nothing was written: a bad request, a lease or a revision that is gone, no space. */
const REFUSED =
  /(^|\s)(3 INVALID|5 NOT_FOUND|7 PERMISSION|8 RESOURCE|9 FAILED|11 OUT_OF_RANGE|16 UNAUTH)|permission denied/

/**
 * @throws TenureError `invalid-name` for the group; its functions throw `invalid-argument` for a bad token
 *   or effect, `fence-not-ready` for an etcd that is too old, `record-malformed`, `store-refused` and
 *   `store-unreachable` (the outcome may be unknown).
 * @example
 * const fence = createEtcdFence(client, { group: 'orders' })
 * await fence.seal(p.token)
 * await fence.guard(p.token, { success: [{ request_put: { key, value } }] })
 */
export function createEtcdFence(
  client: EtcdFenceClient,
  options: EtcdFenceOptions,
): Fence<EtcdEffect, EtcdResult> {
  const group = groupName(options.group)
  const prefix = options.prefix ?? DEFAULT_FENCE_PREFIX
  let isReady = false
  const transact = async (request: ITxnRequest): Promise<ITxnResponse> => {
    try {
      if (!isReady) await checkVersion(client)
      isReady = true
      return await client.kv.txn(request)
    } catch (error) {
      throw isTenureError(error) ? error : errorOf(error)
    }
  }
  const keyOf = ({ partition }: Token) => fenceKey(group, partition, prefix)

  return {
    async seal(value) {
      const token = checkTokenOf(group, value)
      const key = keyOf(token)
      const found = readSeal(await transact(sealRequest(key, token)))
      if (found === null) return { ok: true }
      const highest = readSortable(key, found)
      return { ok: false, reason: 'stale', highest }
    },
    async guard(value, effect) {
      const token = checkTokenOf(group, value)
      const key = keyOf(token)
      refuseNoEffect(effect)
      if (writesKey([...effect.success, ...(effect.failure ?? [])], key)) {
        throw badEffect(`${key} is the fence itself: leave it alone`)
      }
      const response = await transact(effectRequest(key, token, effect))
      if (response.succeeded) return { ok: true, value: readEffect(response, effect) }
      const found = response.responses[0]?.response_range.kvs[0]
      if (found === undefined) return { ok: false, reason: 'unsealed', highest: null }
      const highest = readSortable(key, found.value)
      return { ok: false, reason: reasonOf(token, highest), highest }
    },
  }
}

/** A compare that is no list would have no length, and be left out. */
function refuseNoEffect(effect: EtcdEffect): void {
  const lists = [effect?.compare ?? [], effect?.success, effect?.failure ?? []]
  if (lists.every((list) => Array.isArray(list))) return
  throw badEffect('give { success: [...] }, and with it lists for compare and failure, or neither')
}

function sealRequest(key: Buffer, token: Token): ITxnRequest {
  const mine = Buffer.from(sortableToken(token))
  const put: IRequestOp = { request_put: { key, value: mine } }
  const raise: ITxnRequest = {
    compare: [valueIsBelow(key, mine.subarray(0, POSITION_LENGTH))],
    success: [put],
    failure: [{ request_range: { key } }],
  }
  const keepOrRaise: ITxnRequest = {
    compare: [valueEquals(key, mine)],
    success: [],
    failure: [{ request_txn: raise }],
  }
  return { compare: [isAbsent(key)], success: [put], failure: [{ request_txn: keepOrRaise }] }
}

/** What stands in the way, or null when the fence is at the token now. */
function readSeal(response: ITxnResponse): Buffer | null {
  if (response.succeeded) return null
  const keepOrRaise = response.responses[0]?.response_txn
  if (keepOrRaise?.succeeded !== false) return null
  const raise = keepOrRaise.responses[0]?.response_txn
  if (raise?.succeeded !== false) return null
  return raise.responses[0]?.response_range.kvs[0]?.value ?? null
}

function effectRequest(key: Buffer, token: Token, effect: EtcdEffect): ITxnRequest {
  const { compare = [], success, failure = [] } = effect
  const own = { compare: [...compare], success: [...success], failure: [...failure] }
  return {
    compare: [valueEquals(key, Buffer.from(sortableToken(token)))],
    success: isNested(effect) ? [{ request_txn: own }] : own.success,
    failure: [{ request_range: { key } }],
  }
}

/** An effect without a condition has but one way to go: no transaction of its own is needed. */
function isNested({ compare = [] }: EtcdEffect): boolean {
  return compare.length > 0
}

function readEffect(response: ITxnResponse, effect: EtcdEffect): EtcdResult {
  if (!isNested(effect)) return { succeeded: true, responses: response.responses }
  const { succeeded = false, responses = [] } = response.responses[0]?.response_txn ?? {}
  return { succeeded, responses }
}

function reasonOf(token: Token, highest: Sealed): 'stale' | 'unsealed' {
  return decideEffect(highest, token) === 'unsealed' ? 'unsealed' : 'stale'
}

async function checkVersion(client: EtcdFenceClient): Promise<void> {
  const { version } = await client.maintenance.status()
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > VERSION_MIN[0] || (major === VERSION_MIN[0] && minor >= VERSION_MIN[1])) return
  throw createTenureError(
    'fence-not-ready',
    `etcd ${version} is too old for a fence: ${VERSION_MIN.join('.')} or later is needed`,
  )
}

function errorOf(error: unknown): TenureError {
  const text = error instanceof Error ? error.message : String(error)
  if (REFUSED.test(text)) {
    return createTenureError('store-refused', `etcd refused: ${text}`, { cause: error })
  }
  return createTenureError('store-unreachable', `etcd did not answer: ${text}`, {
    cause: error,
    details: { outcome: 'unknown' },
  })
}
