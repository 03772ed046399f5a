/**
 * The key layout of a group in etcd (DESIGN: "Records in etcd"). Partition numbers have six digits, so
 * that keys sort as numbers do; a group has at most 1,000,000 partitions.
 */
import type { GroupName, MemberName, PartitionId } from './ids.ts'

export const DEFAULT_KEY_PREFIX = '/tenure/v1/'
export const PARTITIONS_MAX = 1_000_000

export type GroupKeys = {
  /** Everything of the group, `/` at the end. */
  readonly prefix: string
  readonly incarnation: string
  readonly config: string
  readonly rebalancer: string
  readonly freeze: string
  readonly disabledGroup: string
  /** Never put: deleting it makes a transaction a writing one without a revision. */
  readonly never: string
  member(member: MemberName): string
  eviction(member: MemberName): string
  cordon(member: MemberName): string
  partition(partition: PartitionId): string
  disabledPartition(partition: PartitionId): string
  rebalance(id: string): string
}

export function groupKeys(keyPrefix: string, group: GroupName): GroupKeys {
  const prefix = `${keyPrefix}${group}/`
  return {
    prefix,
    incarnation: `${prefix}incarnation`,
    config: `${prefix}config`,
    rebalancer: `${prefix}rebalancer`,
    freeze: `${prefix}freeze`,
    disabledGroup: `${prefix}disabled/all`,
    never: `${prefix}never`,
    member: (member) => `${prefix}members/${member}`,
    eviction: (member) => `${prefix}evictions/${member}`,
    cordon: (member) => `${prefix}cordons/${member}`,
    partition: (partition) => `${prefix}partitions/${sixDigits(partition)}`,
    disabledPartition: (partition) => `${prefix}disabled/${sixDigits(partition)}`,
    rebalance: (id) => `${prefix}rebalances/${id}`,
  }
}

/** What a key under a group's prefix is about. */
export type KeySubject =
  | {
      readonly type: 'incarnation' | 'config' | 'rebalancer' | 'freeze' | 'disabled-group'
    }
  | { readonly type: 'member'; readonly member: MemberName }
  | { readonly type: 'eviction'; readonly member: MemberName }
  | { readonly type: 'cordon'; readonly member: MemberName }
  | { readonly type: 'partition'; readonly partition: PartitionId }
  | { readonly type: 'disabled-partition'; readonly partition: PartitionId }
  | { readonly type: 'rebalance'; readonly id: string }
  | { readonly type: 'other' }

const PARTITIONS = 'partitions/'
const DIGITS = 6
const NOUGHT = 0x30

const SINGLE: Readonly<Record<string, KeySubject>> = {
  incarnation: { type: 'incarnation' },
  config: { type: 'config' },
  rebalancer: { type: 'rebalancer' },
  freeze: { type: 'freeze' },
  'disabled/all': { type: 'disabled-group' },
}

export function keySubject(keys: GroupKeys, key: string): KeySubject {
  const from = keys.prefix.length
  if (key.startsWith(PARTITIONS, from)) {
    const partition = partitionNamed(key, from + PARTITIONS.length)
    return partition === null ? { type: 'other' } : { type: 'partition', partition }
  }
  const path = key.slice(from)
  const slash = path.indexOf('/')
  const name = path.slice(slash + 1)
  switch (slash < 0 ? '' : path.slice(0, slash)) {
    case 'members':
      return { type: 'member', member: name as MemberName }
    case 'evictions':
      return { type: 'eviction', member: name as MemberName }
    case 'cordons':
      return { type: 'cordon', member: name as MemberName }
    case 'rebalances':
      return { type: 'rebalance', id: name }
    case 'disabled':
      return path === 'disabled/all'
        ? { type: 'disabled-group' }
        : { type: 'disabled-partition', partition: Number(name) }
    default:
      return SINGLE[path] ?? { type: 'other' }
  }
}

/** Read digit by digit: it is done for each event of every member. */
function partitionNamed(key: string, from: number): PartitionId | null {
  if (key.length !== from + DIGITS) return null
  let partition = 0
  for (let at = from; at < key.length; at += 1) {
    const digit = key.charCodeAt(at) - NOUGHT
    if (digit < 0 || digit > 9) return null
    partition = partition * 10 + digit
  }
  return partition
}

function sixDigits(partition: PartitionId): string {
  return String(partition).padStart(DIGITS, '0')
}
