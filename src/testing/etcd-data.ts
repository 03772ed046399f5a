/**
 * The data of the in-memory etcd: every version of every key until compaction, the changes in revision
 * order, and which keys stand under which lease. Plain data, changed in place by the functions below;
 * who may change it when is the cluster's affair (`memory-etcd.ts`).
 *
 *   I1  versions of one key ascend by revision; several of one transaction share theirs.
 *   I2  `changes` holds one element per revision above `compactRevision`, without holes.
 *   I3  `sortedKeys` names exactly the keys of `versions`.
 *   I4  a key is in `keysOfLease` of a session exactly when its newest version stands under it.
 */
import type { SessionId } from '../core/ids.ts'
import { createTenureError } from '../core/tenure-error.ts'
import type { KeyValue } from '../core/transaction.ts'
import type { WatchEvent } from '../ports/store.ts'
import { compareKeys, lowerBound } from './key-order.ts'

/** `entry` null: the key was deleted here. */
type Version = { readonly modRevision: number; readonly entry: KeyValue | null }

/** Everything that one transaction changed, in the order in which it did. */
export type EtcdChange = {
  readonly revision: number
  readonly events: readonly WatchEvent[]
}

export type EtcdData = {
  revision: number
  /** Reads and watches below this are refused. */
  compactRevision: number
  readonly versions: Map<string, Version[]>
  sortedKeys: string[]
  changes: EtcdChange[]
  readonly keysOfLease: Map<SessionId, Set<string>>
}

export function createEtcdData(): EtcdData {
  return {
    revision: 1,
    compactRevision: 0,
    versions: new Map(),
    sortedKeys: [],
    changes: [],
    keysOfLease: new Map(),
  }
}

/** A copy that shares only immutable parts. */
export function copyEtcdData(data: EtcdData): EtcdData {
  return {
    revision: data.revision,
    compactRevision: data.compactRevision,
    versions: new Map([...data.versions].map(([key, versions]) => [key, [...versions]])),
    sortedKeys: [...data.sortedKeys],
    changes: [...data.changes],
    keysOfLease: new Map([...data.keysOfLease].map(([session, keys]) => [session, new Set(keys)])),
  }
}

export const NEWEST = Number.POSITIVE_INFINITY

/** The key as it stood right after `atRevision`. */
export function readKey(data: EtcdData, key: string, atRevision = NEWEST): KeyValue | null {
  const versions = data.versions.get(key)
  if (versions === undefined) return null
  for (let index = versions.length - 1; index >= 0; index -= 1) {
    const version = versions[index] as Version
    if (version.modRevision <= atRevision) return version.entry
  }
  return null
}

/** Keys under the prefix that come after `after`, ascending, as they stood right after `atRevision`. */
export function* scanKeys(
  data: EtcdData,
  prefix: string,
  options: { readonly after?: string; readonly atRevision?: number } = {},
): Generator<KeyValue> {
  const { after, atRevision = NEWEST } = options
  const start = after !== undefined && compareKeys(after, prefix) > 0 ? after : prefix
  const keys = data.sortedKeys
  for (let index = lowerBound(keys, start); index < keys.length; index += 1) {
    const key = keys[index] as string
    if (!key.startsWith(prefix)) return
    if (key === after) continue
    const entry = readKey(data, key, atRevision)
    if (entry !== null) yield entry
  }
}

/** One transaction's writes: all at the next revision, which exists only if anything was written. */
export type EtcdWrite = {
  put(key: string, value: string, session: SessionId | null): void
  /** How many keys it deleted: 0 or 1. */
  remove(key: string): number
  /** The change, or null when nothing was written. */
  finish(): EtcdChange | null
}

export function beginWrite(data: EtcdData): EtcdWrite {
  const revision = data.revision + 1
  const events: WatchEvent[] = []
  return {
    put: (key, value, session) => {
      const before = readKey(data, key)
      const createRevision = before?.createRevision ?? revision
      const entry: KeyValue = { key, value, createRevision, modRevision: revision, session }
      moveToLease(data, key, before?.session ?? null, session)
      addVersion(data, key, { modRevision: revision, entry })
      events.push({ type: 'put', entry })
    },
    remove: (key) => {
      const before = readKey(data, key)
      if (before === null) return 0
      moveToLease(data, key, before.session, null)
      addVersion(data, key, { modRevision: revision, entry: null })
      events.push({ type: 'delete', key, modRevision: revision })
      return 1
    },
    finish: () => {
      if (events.length === 0) return null
      data.revision = revision
      const change = { revision, events }
      data.changes.push(change)
      return change
    },
  }
}

/** Changes from `fromRevision` on, that one included; those compacted away are not there. */
export function changesFrom(data: EtcdData, fromRevision: number): readonly EtcdChange[] {
  const first = data.changes[0]
  if (first === undefined) return []
  return data.changes.slice(Math.max(0, fromRevision - first.revision))
}

/** @throws TenureError `invalid-argument` for a revision of the future or below an earlier compaction. */
export function compactData(data: EtcdData, revision: number): void {
  if (revision > data.revision || revision <= data.compactRevision) {
    throw createTenureError('invalid-argument', `revision ${revision} cannot be compacted to`)
  }
  data.compactRevision = revision
  for (const [key, versions] of data.versions) {
    const kept = versions.filter((version, index) => {
      if (version.modRevision > revision) return true
      const next = versions[index + 1]
      const isNewest = next === undefined || next.modRevision > revision
      return isNewest && version.entry !== null
    })
    if (kept.length === 0) data.versions.delete(key)
    else if (kept.length < versions.length) data.versions.set(key, kept)
  }
  data.sortedKeys = data.sortedKeys.filter((key) => data.versions.has(key))
  data.changes = data.changes.filter((change) => change.revision >= revision)
}

/** Roughly what the database file would hold. */
export function databaseBytes(data: EtcdData): number {
  let bytes = 0
  for (const [key, versions] of data.versions) {
    for (const { entry } of versions) bytes += key.length + (entry?.value.length ?? 0) + 40
  }
  return bytes
}

function addVersion(data: EtcdData, key: string, version: Version): void {
  const versions = data.versions.get(key)
  if (versions !== undefined) {
    versions.push(version)
    return
  }
  data.versions.set(key, [version])
  data.sortedKeys.splice(lowerBound(data.sortedKeys, key), 0, key)
}

function moveToLease(
  data: EtcdData,
  key: string,
  from: SessionId | null,
  to: SessionId | null,
): void {
  if (from === to) return
  if (from !== null) data.keysOfLease.get(from)?.delete(key)
  if (to === null) return
  const keys = data.keysOfLease.get(to)
  if (keys === undefined) data.keysOfLease.set(to, new Set([key]))
  else keys.add(key)
}
