/**
 * The text that `owner?key=` answers, in two parts that are kept for the next answer: what is said of the
 * partition stays until the map or its being served changes, what is said of the map's version and age for
 * as long as it reads the same (a millisecond, where many ask).
 */
import type { PartitionId } from '../core/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { GroupView, MapVersion, PartitionView } from '../ports/group-access.ts'
import { compareVersions, versionText } from './version-headers.ts'

/** The beginning of an answer. */
export type PartitionText = {
  readonly partition: PartitionId
  /** Of the map that it was made from. */
  readonly edition: number
  readonly text: string
  /** In UTF-8. */
  readonly bytes: number
  readonly serving: boolean
}

/** The end of an answer: ASCII, so it has as many bytes as characters. */
export type FreshnessText = {
  readonly text: string
  readonly etag: string
  readonly version: MapVersion
  readonly asOfMs: number
  readonly ageMs: number
  readonly stale: boolean
}

/** Partitions that are this far apart share a place: the one asked for last has it. */
const TEXTS_KEPT = 16_384

/** Answers about one group, as one view of it tells. */
export class OwnerAnswers {
  private readonly group: string
  private readonly clock: Clock
  private readonly view: GroupView
  private readonly texts: (PartitionText | null)[]
  private last: FreshnessText | null = null

  constructor(group: string, view: GroupView, clock: Clock) {
    this.group = group
    this.view = view
    this.clock = clock
    this.texts = Array.from({ length: TEXTS_KEPT }, () => null)
  }

  isOf(view: GroupView): boolean {
    return this.view === view
  }

  ofKey(key: string): PartitionText {
    return this.ofPartition(this.view.partitionOf(key))
  }

  ofPartition(partition: PartitionId): PartitionText {
    const { view, texts } = this
    const edition = view.edition()
    const serving = view.isServing(partition)
    const place = partition % TEXTS_KEPT
    const kept = texts[place] ?? null
    const isKept = kept?.partition === partition && kept.edition === edition
    if (isKept && kept.serving === serving) return kept
    const text = textOf(this.group, view.partition(partition), serving)
    // Counting also makes one piece of the text, which is then copied at each answer.
    const made = { partition, edition, text, bytes: Buffer.byteLength(text), serving }
    texts[place] = made
    return made
  }

  /** What `freshnessFields` says; here no text is made to find out that it reads the same. */
  freshness(): FreshnessText {
    const { version, ageMs: exactMs, stale } = this.view.freshness()
    const ageMs = Math.round(exactMs)
    const asOfMs = this.clock.wallMs() - ageMs
    const { last } = this
    if (
      last !== null &&
      last.asOfMs === asOfMs &&
      last.ageMs === ageMs &&
      last.stale === stale &&
      compareVersions(last.version, version) === 0
    ) {
      return last
    }
    const named = versionText(version)
    const text = `"version":"${named}","asOfMs":${asOfMs},"ageMs":${ageMs},"stale":${stale}}`
    this.last = { text, etag: `"${named}"`, version, asOfMs, ageMs, stale }
    return this.last
  }
}

/** Names, sessions and versions hold no character that JSON escapes; addresses and reasons may. */
function textOf(group: string, partition: PartitionView, serving: boolean): string {
  const why = partition.why === null ? 'null' : JSON.stringify(partition.why)
  return (
    `{"group":"${group}","partition":${partition.partition},${ownerFields(partition)},` +
    `"phase":"${partition.phase}","serving":${serving},"why":${why},`
  )
}

function ownerFields({ owner, incarnation, generation }: PartitionView): string {
  if (owner === null) return '"owner":null,"token":null'
  return (
    `"owner":{"member":"${owner.member}","address":${JSON.stringify(owner.address)},"live":${owner.live}},` +
    `"token":{"incarnation":${incarnation},"generation":${generation},"session":"${owner.session}"}`
  )
}
