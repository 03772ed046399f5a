/**
 * What a process notes of one grant under load, and the pause of a move: from the end of the last item
 * at the old owner to the admission of the first at the new one. The items' own time is thereby left
 * out. Times are the machine's (`machineMs`), so that the notes of two processes compare.
 */
export type GrantNote = {
  readonly partition: number
  readonly generation: number
  /** 0: nothing was admitted. */
  readonly firstAdmittedMs: number
  readonly lastAdmittedMs: number
  readonly lastEndedMs: number
  /** In flight when it was asked to give up; -1: it was not asked. */
  readonly inFlight: number
}

export type OpenNote = { -readonly [Name in keyof GrantNote]: GrantNote[Name] }

export function openNote(partition: number, generation: number): OpenNote {
  const times = { firstAdmittedMs: 0, lastAdmittedMs: 0, lastEndedMs: 0 }
  return { partition, generation, ...times, inFlight: -1 }
}

/** Pauses of all moves that had an item in flight and were seen from both sides. */
export function pausesOf(notes: readonly GrantNote[]): readonly number[] {
  const began = new Map<string, GrantNote>()
  for (const note of notes) began.set(`${note.partition}/${note.generation}`, note)
  const pauses: number[] = []
  for (const { partition, generation, inFlight, lastEndedMs } of notes) {
    if (inFlight < 1 || lastEndedMs === 0) continue
    const next = began.get(`${partition}/${generation + 1}`)
    if (next === undefined || next.firstAdmittedMs === 0) continue
    pauses.push(next.firstAdmittedMs - lastEndedMs)
  }
  return pauses
}

/** Divides the length of an item of scale-out. */
export const BUCKET_MS = 100

/** All that a process notes between two looks at it. */
export type MemberNotes = {
  readonly sessionOpenedMs: number
  readonly firstGrantMs: number
  readonly firstDrainingMs: number
  readonly lastServingMs: number
  readonly items: number
  /** Items admitted in each `BUCKET_MS` of the machine's time, by the bucket's number. */
  readonly buckets: ReadonlyMap<number, number>
  readonly lost: number
  readonly grants: readonly GrantNote[]
}

/** The first items end at different times, or all partitions would work in step. */
export function itemTime(partition: number, itemMs: number, isFirst: boolean): number {
  return isFirst ? Math.max(1, (itemMs * (1 + (partition % 97))) / 97) : itemMs
}
