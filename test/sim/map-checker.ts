/**
 * S8 over the observers: a map's version never goes back, and a map that is in step holds, entry by
 * entry, nothing older than what etcd held at the map's version and nothing that etcd never held.
 *
 * A map merges what it hears ahead of its version, so an entry may be newer than the version says. After
 * a restore, revisions repeat; maps are compared again once the incarnation has risen.
 */
import { keySubject } from '../../src/core/keys.ts'
import { compareVersions, type MapVersion } from '../../src/core/map-version.ts'
import { decodePartitionRecord, type PartitionRecord } from '../../src/core/partition-record.ts'
import type { WatchEvent } from '../../src/ports/store.ts'
import type { Observer } from '../../src/runtime/observer-types.ts'
import type { EtcdTruth } from './etcd-truth.ts'
import type { WorldBase } from './world-base.ts'

type Version = { readonly revision: number; readonly record: PartitionRecord }

/** A map is compared with etcd no more often than this, per observer. */
const COMPARE_EVERY_MS = 500
/** A mirror looks for what its watch kept back this often, and twice before it lists anew. */
const MIRROR_CHECK_MS = 20_000
/** Older versions than these many are not kept per partition. */
const VERSIONS_KEPT = 400

export class MapChecker {
  /** Maps compared entry by entry. */
  comparisons = 0
  private readonly truth: EtcdTruth
  private readonly base: WorldBase
  private readonly versions = new Map<number, Version[]>()
  private readonly last = new Map<Observer, { version: MapVersion; comparedAtMs: number }>()
  /** Until then etcd's watches may have kept something back, which only a check of the mirror shows. */
  private excusedUntilMs = Number.NEGATIVE_INFINITY
  /** Maps of this incarnation or an older one cannot be compared. */
  private notThrough = 0

  constructor(truth: EtcdTruth, base: WorldBase) {
    this.truth = truth
    this.base = base
  }

  /** Watches lose events from now on, or no more. */
  watchesLose(isOn: boolean): void {
    const nowMs = this.base.clock.monotonicMs()
    this.excusedUntilMs = isOn ? Number.POSITIVE_INFINITY : nowMs + MIRROR_CHECK_MS
  }

  /** A check of the mirror needs etcd: what keeps it away puts the check off. */
  etcdDisturbed(): void {
    const nowMs = this.base.clock.monotonicMs()
    if (nowMs >= this.excusedUntilMs) return
    this.excusedUntilMs = Math.max(this.excusedUntilMs, nowMs + MIRROR_CHECK_MS)
  }

  /** Before what etcd held is replaced: maps of this incarnation tell of another history. */
  lost(): void {
    this.notThrough = Math.max(this.notThrough, this.truth.incarnation)
    this.versions.clear()
  }

  /** After it: what stands now. */
  reloaded(): void {
    this.notThrough = Math.max(this.notThrough, this.truth.incarnation)
    for (const [partition, { record, revision }] of this.truth.records) {
      this.versions.set(partition, [{ revision, record }])
    }
  }

  noteChange(event: WatchEvent, revision: number): void {
    if (event.type !== 'put') return
    const subject = keySubject(this.base.keys, event.entry.key)
    if (subject.type !== 'partition') return
    const record = decodePartitionRecord(event.entry.value, subject.partition)
    const known = this.versions.get(subject.partition)
    if (known === undefined) this.versions.set(subject.partition, [{ revision, record }])
    else {
      known.push({ revision, record })
      if (known.length > VERSIONS_KEPT) known.shift()
    }
  }

  changed(name: string, observer: Observer): void {
    const { version } = observer
    const nowMs = this.base.clock.monotonicMs()
    const before = this.last.get(observer)
    if (before !== undefined && compareVersions(version, before.version) < 0) {
      const text = `${before.version.incarnation}.${before.version.revision}`
      this.base.box.report('S8', null, `${name} went back from version ${text}`)
    }
    const comparedAtMs = before?.comparedAtMs ?? Number.NEGATIVE_INFINITY
    const isDue = nowMs - comparedAtMs >= COMPARE_EVERY_MS
    this.last.set(observer, { version, comparedAtMs: isDue ? nowMs : comparedAtMs })
    if (isDue) this.compare(name, observer)
  }

  /** Why the map is not what etcd holds right now, or null: it is, entry by entry. */
  differs(name: string, observer: Observer | null): string | null {
    if (observer === null || observer.status !== 'following') {
      return `${name} is ${observer?.status ?? 'not up'}`
    }
    if (observer.partitions === 0) return `${name} has no map`
    if (observer.version.incarnation !== this.truth.incarnation) {
      return `${name} is at incarnation ${observer.version.incarnation}`
    }
    for (const [partition, { record }] of this.truth.records) {
      if (!isSame(observer, partition, record)) return `${name} differs at partition ${partition}`
    }
    const live = observer.members().map(({ member, session }) => `${member} ${session}`)
    const real = [...this.truth.sessions].map(([member, session]) => `${member} ${session}`)
    return live.sort().join() === real.sort().join() ? null : `${name} has other members`
  }

  private compare(name: string, observer: Observer): void {
    const { version, partitions, status } = observer
    if (status !== 'following' || version.incarnation !== this.truth.incarnation) return
    if (version.incarnation <= this.notThrough) return
    if (this.base.clock.monotonicMs() < this.excusedUntilMs) return
    this.comparisons += 1
    for (let partition = 0; partition < partitions; partition += 1) {
      const versions = this.versions.get(partition) ?? []
      if (isAmong(observer, partition, versions, version.revision)) continue
      const seen = observer.partition(partition)
      const text = `${seen.phase} ${seen.incarnation}.${seen.generation} ${seen.owner?.member ?? ''}`
      const detail = `${name} at version ${version.incarnation}.${version.revision} has ${text}`
      this.base.box.report('S8', partition, detail)
      return
    }
  }
}

/** True when what the map holds stood at the revision, or came to stand since. */
function isAmong(
  observer: Observer,
  partition: number,
  versions: readonly Version[],
  revision: number,
): boolean {
  for (let index = versions.length - 1; index >= 0; index -= 1) {
    const version = versions[index] as Version
    if (isSame(observer, partition, version.record)) return true
    // This one stood at the map's revision: anything before it is too old.
    if (version.revision <= revision) return false
  }
  return versions.length === 0
    ? observer.partition(partition).generation === 0
    : versions.length >= VERSIONS_KEPT || observer.partition(partition).generation === 0
}

function isSame(observer: Observer, partition: number, record: PartitionRecord): boolean {
  const seen = observer.partition(partition)
  if (seen.phase !== record.phase || seen.incarnation !== record.incarnation) return false
  if (seen.generation !== record.generation) return false
  const owner = record.phase === 'vacant' ? null : record.owner
  return seen.owner?.session === owner?.session && seen.owner?.member === owner?.member
}
