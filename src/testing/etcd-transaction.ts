/**
 * etcd's transactions, as 3.4 runs them. First the request is checked as text (counts, empty and
 * duplicate keys), whichever path it would take. Then the path is chosen: every compare, at every
 * depth, looks at the state before the transaction. Then the leases of the puts on that path are
 * checked, and only then is anything written, in order; a read sees the writes before it.
 */
import type { SessionId } from '../core/ids.ts'
import type {
  Compare,
  Operation,
  OperationResult,
  Transaction,
  TransactionResult,
} from '../core/transaction.ts'
import { TRANSACTION_OPERATIONS_MAX } from '../core/transaction.ts'
import {
  beginWrite,
  type EtcdChange,
  type EtcdData,
  type EtcdWrite,
  NEWEST,
  readKey,
  scanKeys,
} from './etcd-data.ts'

/** etcd's default for one request (`--max-request-bytes`), 1.5 MiB. */
const REQUEST_BYTES_MAX = 1_572_864

export type EtcdOutcome =
  | { readonly ok: true; readonly value: TransactionResult; readonly change: EtcdChange | null }
  | { readonly ok: false; readonly detail: string }

/** A transaction without a put or delete in any branch: etcd answers it as a read. */
export function isReadOnly(transaction: Transaction): boolean {
  return !has(transaction, (operation) => operation.type === 'put' || operation.type === 'delete')
}

export function containsPut(transaction: Transaction): boolean {
  return has(transaction, (operation) => operation.type === 'put')
}

/** Runs a transaction. `atRevision` (read-only ones alone) answers from the state of that time. */
export function runTransaction(
  data: EtcdData,
  isLeaseAlive: (session: SessionId) => boolean,
  transaction: Transaction,
  atRevision = NEWEST,
): EtcdOutcome {
  const fault = checkTransaction(transaction)
  if (fault !== null) return { ok: false, detail: fault }
  const path = choosePath(data, transaction, atRevision)
  if (!leasesLive(transaction, path, isLeaseAlive)) {
    return { ok: false, detail: 'etcdserver: requested lease not found' }
  }
  const write = beginWrite(data)
  const value = runPath(data, write, transaction, path, atRevision)
  return { ok: true, value, change: write.finish() }
}

/** What etcd says of a request that it does not even try; null when there is nothing to say. */
function checkTransaction(transaction: Transaction): string | null {
  return (
    checkSizes(transaction, TRANSACTION_OPERATIONS_MAX) ??
    (requestBytes(transaction) > REQUEST_BYTES_MAX ? 'etcdserver: request is too large' : null) ??
    (collectKeys([{ type: 'transaction', ...transaction }]) === null
      ? 'etcdserver: duplicate key given in txn request'
      : null)
  )
}

function checkSizes(transaction: Transaction, limit: number): string | null {
  const { compare, success, failure } = transaction
  const size = Math.max(compare.length, success.length, failure.length)
  if (size > limit) return 'etcdserver: too many operations in txn request'
  if (compare.some(({ key }) => key === '')) return 'etcdserver: key is not provided'
  for (const operation of [...success, ...failure]) {
    const fault = checkOperation(operation, limit - size)
    if (fault !== null) return fault
  }
  return null
}

function checkOperation(operation: Operation, limit: number): string | null {
  switch (operation.type) {
    case 'put':
    case 'delete':
    case 'get':
      return operation.key === '' ? 'etcdserver: key is not provided' : null
    case 'summary':
      return null
    case 'transaction':
      return checkSizes(operation, limit)
    default:
      return operation satisfies never
  }
}

type KeySets = { readonly puts: Set<string>; readonly deletes: Set<string> }

/**
 * The keys that a list of operations may put and delete, or null when two of them clash: no key twice
 * in puts that can run together, none both put and deleted, where a nested delete counts for the
 * nested transactions after it. Both branches of one nested transaction may put the same key.
 */
function collectKeys(operations: readonly Operation[]): KeySets | null {
  const puts = new Set<string>()
  const deletes = new Set<string>()
  for (const operation of operations) {
    if (operation.type === 'delete') deletes.add(operation.key)
  }
  for (const operation of operations) {
    if (operation.type !== 'transaction') continue
    const success = collectKeys(operation.success)
    const failure = collectKeys(operation.failure)
    if (success === null || failure === null) return null
    for (const key of success.puts) {
      if (puts.has(key) || deletes.has(key)) return null
      puts.add(key)
    }
    for (const key of failure.puts) {
      if ((puts.has(key) && !success.puts.has(key)) || deletes.has(key)) return null
      puts.add(key)
    }
    for (const key of success.deletes) deletes.add(key)
    for (const key of failure.deletes) deletes.add(key)
  }
  for (const operation of operations) {
    if (operation.type !== 'put') continue
    if (puts.has(operation.key) || deletes.has(operation.key)) return null
    puts.add(operation.key)
  }
  return { puts, deletes }
}

/** Which branch each transaction takes; `nested` follows the nested transactions of that branch. */
type Path = { readonly succeeded: boolean; readonly nested: readonly Path[] }

function choosePath(data: EtcdData, transaction: Transaction, atRevision: number): Path {
  const succeeded = transaction.compare.every((compare) => holds(data, compare, atRevision))
  const nested: Path[] = []
  for (const operation of succeeded ? transaction.success : transaction.failure) {
    if (operation.type === 'transaction') nested.push(choosePath(data, operation, atRevision))
  }
  return { succeeded, nested }
}

function holds(data: EtcdData, compare: Compare, atRevision: number): boolean {
  const found = readKey(data, compare.key, atRevision)
  switch (compare.type) {
    case 'value-equals':
      return found !== null && found.value === compare.value
    case 'absent':
      return found === null
    case 'present':
      return found !== null
    case 'lease-equals':
      return found !== null && found.session === compare.session
    case 'lease-differs':
      return found === null || found.session !== compare.session
    default:
      return compare satisfies never
  }
}

function leasesLive(
  transaction: Transaction,
  path: Path,
  isLeaseAlive: (session: SessionId) => boolean,
): boolean {
  let nested = 0
  for (const operation of branch(transaction, path)) {
    if (operation.type === 'put') {
      if (operation.session !== undefined && !isLeaseAlive(operation.session)) return false
    } else if (operation.type === 'transaction') {
      if (!leasesLive(operation, path.nested[nested] as Path, isLeaseAlive)) return false
      nested += 1
    }
  }
  return true
}

function runPath(
  data: EtcdData,
  write: EtcdWrite,
  transaction: Transaction,
  path: Path,
  atRevision: number,
): TransactionResult {
  let nested = 0
  const results = branch(transaction, path).map((operation): OperationResult => {
    switch (operation.type) {
      case 'put':
        write.put(operation.key, operation.value, operation.session ?? null)
        return { type: 'put' }
      case 'delete':
        return { type: 'delete', deleted: write.remove(operation.key) }
      case 'get':
        return { type: 'get', found: readKey(data, operation.key, atRevision) }
      case 'summary':
        return summarise(data, operation.prefix, atRevision)
      case 'transaction': {
        const inner = path.nested[nested] as Path
        nested += 1
        return { type: 'transaction', ...runPath(data, write, operation, inner, atRevision) }
      }
      default:
        return operation satisfies never
    }
  })
  return { succeeded: path.succeeded, results }
}

function summarise(data: EtcdData, prefix: string, atRevision: number): OperationResult {
  let count = 0
  let newestModRevision = 0
  for (const { modRevision } of scanKeys(data, prefix, { atRevision })) {
    count += 1
    if (modRevision > newestModRevision) newestModRevision = modRevision
  }
  return { type: 'summary', count, newestModRevision }
}

function branch(transaction: Transaction, path: Path): readonly Operation[] {
  return path.succeeded ? transaction.success : transaction.failure
}

function has(transaction: Transaction, test: (operation: Operation) => boolean): boolean {
  return [...transaction.success, ...transaction.failure].some((operation) =>
    operation.type === 'transaction' ? has(operation, test) : test(operation),
  )
}

/** Text lengths plus a few bytes of framing each: near enough to tell a huge request from a large one. */
function requestBytes(transaction: Transaction): number {
  let bytes = 0
  for (const compare of transaction.compare) {
    bytes += compare.key.length + (compare.type === 'value-equals' ? compare.value.length : 8) + 8
  }
  for (const operation of [...transaction.success, ...transaction.failure]) {
    if (operation.type === 'transaction') bytes += requestBytes(operation)
    else if (operation.type === 'put') bytes += operation.key.length + operation.value.length + 16
    else bytes += 32
  }
  return bytes
}
