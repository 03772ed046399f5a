/**
 * The records of a group as one process keeps them, in little memory: typed arrays hold what is asked of
 * every partition again and again (phase, owner, position, mod revision) and the rest of a plain record, as
 * nearly all are (`plain-record.ts`). The exact text of such a record, and the record itself, are put together
 * when somebody asks; any other record is parsed and keeps its text. So 100,000 partitions cost some 50 bytes
 * each, not their texts or a tree of objects. A bounded number of decoded records is kept.
 *
 * Owners are shared: partitions of one session name one `Owner` object, counted, and given up with the
 * last of them. A vacant partition's place names who held it last.
 *
 * Not promised: that two calls of `record` answer the same object. Records are compared by their text.
 */
import type { StoredRecord } from './commit.ts'
import type { PartitionId, SessionId } from './ids.ts'
import type { Owner, PartitionRecord, PendingMove } from './partition-record.ts'
import { decodePartitionRecord, recordOwner } from './partition-record.ts'
import { decodedRecord, type PlainRecord, plainText } from './plain-record.ts'
import { readPlainRecord } from './plain-record-bytes.ts'
import type { Position } from './token.ts'
import type { KeyValue } from './transaction.ts'

export type Phase = PartitionRecord['phase']

const PHASES: readonly (Phase | null)[] = [null, 'vacant', 'owned', 'revoking', 'halted']
const VACANT = PHASES.indexOf('vacant')
const OWNED = PHASES.indexOf('owned')
const REVOKING = PHASES.indexOf('revoking')
const NOBODY = -1
/** Decoded records kept, one per place: a power of two. */
const DECODED_MAX = 2048
const FIRST_SIZE = 64

type Decoded = { readonly partition: PartitionId; readonly stored: StoredRecord }

export class PartitionTable {
  /** Of the records that are not plain. */
  private readonly texts = new Map<PartitionId, string>()
  /** Of the plain ones that are being revoked. */
  private readonly moves = new Map<PartitionId, PendingMove>()
  private phases = new Uint8Array(0)
  private owners = new Int32Array(0)
  private previous = new Int32Array(0)
  private incarnations = new Float64Array(0)
  private generations = new Float64Array(0)
  private revisions = new Float64Array(0)
  /** A plain record's kind + 1; 0: not one, its text is kept. */
  private kinds = new Uint8Array(0)
  private operationsHigh = new Uint32Array(0)
  private operationsLow = new Uint32Array(0)
  private times = new Float64Array(0)
  /** Full from the start: a list that begins with a far place is a hash. */
  private readonly decoded: (Decoded | null)[] = new Array(DECODED_MAX).fill(null)
  private readonly names = new OwnerNames()
  private held = 0
  private revoked = 0

  /** Number of records. */
  get size(): number {
    return this.held
  }

  /** Number of records that are being revoked. */
  get revoking(): number {
    return this.revoked
  }

  /** Makes room for that many partitions at once; the table grows by itself where it must. */
  reserve(partitions: number): void {
    if (partitions > this.phases.length) this.grow(partitions)
  }

  /** @throws TenureError as `decodePartitionRecord` does; the table is then as it was. */
  put(partition: PartitionId, entry: Pick<KeyValue, 'value' | 'bytes'>, modRevision: number): void {
    const plain = readPlainRecord(entry)
    if (plain === null) {
      const raw = entry.value
      this.putDecoded(partition, raw, decodePartitionRecord(raw, partition))
    } else this.putPlain(partition, plain)
    this.revisions[partition] = modRevision
  }

  delete(partition: PartitionId): void {
    if (!this.has(partition)) return
    this.held -= 1
    this.forget(partition)
    this.kinds[partition] = 0
    this.phases[partition] = 0
    this.owners[partition] = NOBODY
    this.previous[partition] = NOBODY
    this.revisions[partition] = 0
  }

  /** The record and its exact text; null: never granted. */
  record(partition: PartitionId): StoredRecord | null {
    if (!this.has(partition)) return null
    const known = this.decoded[partition & (DECODED_MAX - 1)]
    if (known?.partition === partition) return known.stored
    const stored = this.decode(partition)
    this.decoded[partition & (DECODED_MAX - 1)] = { partition, stored }
    return stored
  }

  has(partition: PartitionId): boolean {
    return (this.phases[partition] ?? 0) !== 0
  }

  /** Null: never granted. */
  text(partition: PartitionId): string | null {
    if (!this.has(partition)) return null
    const known = this.decoded[partition & (DECODED_MAX - 1)]
    if (known?.partition === partition) return known.stored.raw
    const plain = this.plain(partition)
    if (plain === null) return this.texts.get(partition) ?? null
    return plainText(decodedRecord(plain))
  }

  /** Null: never granted. */
  phase(partition: PartitionId): Phase | null {
    return PHASES[this.phases[partition] ?? 0] ?? null
  }

  /** Of the last grant; null: never granted. */
  position(partition: PartitionId): Position | null {
    if (!this.has(partition)) return null
    const incarnation = this.incarnations[partition] as number
    return { incarnation, generation: this.generations[partition] as number }
  }

  /** The owner that the record names, in any phase, or null. */
  owner(partition: PartitionId): Owner | null {
    return this.phases[partition] === VACANT ? null : this.lastOwner(partition)
  }

  /** The owner that the record names, or who held it before it became vacant. */
  lastOwner(partition: PartitionId): Owner | null {
    return this.names.owner(this.owners[partition] ?? NOBODY)
  }

  /** Who held it at the grant before the record's, or null. */
  previousOwner(partition: PartitionId): Owner | null {
    return this.names.owner(this.previous[partition] ?? NOBODY)
  }

  /** 0 when there is no record. */
  modRevision(partition: PartitionId): number {
    return this.revisions[partition] ?? 0
  }

  newestModRevision(): number {
    let newest = 0
    for (const revision of this.revisions) if (revision > newest) newest = revision
    return newest
  }

  /** Partitions that have a record, ascending. */
  *partitions(): Iterable<PartitionId> {
    for (let partition = 0; partition < this.phases.length; partition += 1) {
      if (this.phases[partition] !== 0) yield partition
    }
  }

  private putPlain(partition: PartitionId, plain: PlainRecord): void {
    const { move } = plain
    this.begin(partition, move === null ? OWNED : REVOKING, plain, plain.owner, plain.previous)
    this.kinds[partition] = plain.kind + 1
    this.operationsHigh[partition] = plain.high
    this.operationsLow[partition] = plain.low
    this.times[partition] = plain.atMs
    if (move !== null) this.moves.set(partition, move)
  }

  private putDecoded(partition: PartitionId, raw: string, record: PartitionRecord): void {
    const previous = record.previous ?? null
    const phase = PHASES.indexOf(record.phase)
    this.begin(partition, phase, record, recordOwner(record) ?? previous, previous)
    this.kinds[partition] = 0
    this.texts.set(partition, raw)
  }

  private begin(
    partition: PartitionId,
    phase: number,
    { incarnation, generation }: Position,
    named: Owner | null,
    before: Owner | null,
  ): void {
    if (partition >= this.phases.length) this.grow(Math.max(partition + 1, this.phases.length * 2))
    if (!this.has(partition)) this.held += 1
    // Held before the old ones are dropped: mostly they are the same.
    const owner = this.numberOf(named, partition)
    const previous = this.numberOf(before, partition)
    this.forget(partition)
    if (phase === REVOKING) this.revoked += 1
    this.phases[partition] = phase
    this.incarnations[partition] = incarnation
    this.generations[partition] = generation
    this.owners[partition] = owner
    this.previous[partition] = previous
  }

  /** Mostly somebody whom the partition's record names already. */
  private numberOf(owner: Owner | null, partition: PartitionId): number {
    if (owner === null) return NOBODY
    const current = this.owners[partition] as number
    if (this.names.hold(current, owner)) return current
    const before = this.previous[partition] as number
    return this.names.hold(before, owner) ? before : this.names.take(owner)
  }

  private forget(partition: PartitionId): void {
    const place = partition & (DECODED_MAX - 1)
    if (this.decoded[place]?.partition === partition) this.decoded[place] = null
    this.names.drop(this.owners[partition] as number)
    this.names.drop(this.previous[partition] as number)
    if (this.kinds[partition] === 0 && this.texts.size > 0) this.texts.delete(partition)
    if (this.phases[partition] !== REVOKING) return
    this.revoked -= 1
    this.moves.delete(partition)
  }

  private plain(partition: PartitionId): PlainRecord | null {
    const kind = (this.kinds[partition] as number) - 1
    if (kind < 0) return null
    return {
      incarnation: this.incarnations[partition] as number,
      generation: this.generations[partition] as number,
      owner: this.lastOwner(partition) as Owner,
      previous: this.previousOwner(partition),
      kind,
      high: this.operationsHigh[partition] as number,
      low: this.operationsLow[partition] as number,
      atMs: this.times[partition] as number,
      move: this.moves.get(partition) ?? null,
    }
  }

  private decode(partition: PartitionId): StoredRecord {
    const plain = this.plain(partition)
    if (plain !== null) {
      const record = decodedRecord(plain)
      return { record, raw: plainText(record) }
    }
    const raw = this.texts.get(partition) ?? ''
    return { record: decodePartitionRecord(raw, partition), raw }
  }

  private grow(partitions: number): void {
    const size = Math.max(FIRST_SIZE, partitions)
    this.phases = grown(this.phases, new Uint8Array(size))
    this.owners = grown(this.owners, new Int32Array(size).fill(NOBODY))
    this.previous = grown(this.previous, new Int32Array(size).fill(NOBODY))
    this.incarnations = grown(this.incarnations, new Float64Array(size))
    this.generations = grown(this.generations, new Float64Array(size))
    this.revisions = grown(this.revisions, new Float64Array(size))
    this.kinds = grown(this.kinds, new Uint8Array(size))
    this.operationsHigh = grown(this.operationsHigh, new Uint32Array(size))
    this.operationsLow = grown(this.operationsLow, new Uint32Array(size))
    this.times = grown(this.times, new Float64Array(size))
  }
}

function grown<T extends Uint8Array | Uint32Array | Int32Array | Float64Array>(from: T, to: T): T {
  to.set(from)
  return to
}

/** Owners by number, each once; a number is free again when nobody names it any more. */
class OwnerNames {
  /** By session, of which each has one owner; whoever claims another's is found by both names. */
  private readonly numbers = new Map<SessionId, number>()
  private readonly claimed = new Map<string, number>()
  private readonly owners: (Owner | null)[] = []
  private readonly counts: number[] = []
  private readonly free: number[] = []
  private last = NOBODY

  /** False: the number is another owner's, or nobody's. */
  hold(number: number, { member, session }: Owner): boolean {
    const owner = this.owner(number)
    if (owner === null || owner.session !== session || owner.member !== member) return false
    this.counts[number] = (this.counts[number] ?? 0) + 1
    return true
  }

  /** Mostly whom the last one named: grants come in batches of one owner's. */
  take(named: Owner): number {
    if (!this.hold(this.last, named)) this.last = this.find(named)
    return this.last
  }

  private find(named: Owner): number {
    const known = this.numbers.get(named.session)
    const number =
      known !== undefined && this.owners[known]?.member === named.member
        ? known
        : (this.claimed.get(claimOf(named)) ?? this.add(named, known === undefined))
    this.counts[number] = (this.counts[number] ?? 0) + 1
    return number
  }

  drop(number: number): void {
    const owner = this.owner(number)
    if (owner === null) return
    const count = (this.counts[number] ?? 1) - 1
    this.counts[number] = count
    if (count > 0) return
    if (this.numbers.get(owner.session) === number) this.numbers.delete(owner.session)
    else this.claimed.delete(claimOf(owner))
    this.owners[number] = null
    this.free.push(number)
  }

  owner(number: number): Owner | null {
    // A list looks up a negative number as it would a name: slowly.
    return number < 0 ? null : (this.owners[number] ?? null)
  }

  private add({ member, session }: Owner, isFirst: boolean): number {
    const number = this.free.pop() ?? this.owners.length
    this.owners[number] = { member, session }
    this.counts[number] = 0
    if (isFirst) this.numbers.set(session, number)
    else this.claimed.set(claimOf({ member, session }), number)
    return number
  }
}

/** Another text for each other pair, whatever characters somebody wrote. */
function claimOf({ member, session }: Owner): string {
  return `${session.length} ${session} ${member}`
}
