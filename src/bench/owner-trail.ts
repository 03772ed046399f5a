/** Who owned each partition last, by the processes' notes: tells moves from grants to the same owner. */
import type { MemberNotes } from './grant-notes.ts'

export class OwnerTrail {
  private readonly last = new Map<
    number,
    { readonly process: number; readonly generation: number }
  >()

  /** Moves since the last call, by partition; those that did not move are left out. */
  follow(notes: readonly MemberNotes[]): ReadonlyMap<number, number> {
    const grants = notes.flatMap(({ grants }, process) =>
      grants.map(({ partition, generation }) => ({ partition, generation, process })),
    )
    const moved = new Map<number, number>()
    for (const { partition, generation, process } of grants.sort(byGeneration)) {
      const before = this.last.get(partition)
      if (before !== undefined && before.generation >= generation) continue
      this.last.set(partition, { process, generation })
      if (before === undefined || before.process === process) continue
      moved.set(partition, (moved.get(partition) ?? 0) + 1)
    }
    return moved
  }
}

function byGeneration(a: { readonly generation: number }, b: { readonly generation: number }) {
  return a.generation - b.generation
}
