/**
 * The vacant partitions that somebody may win, by their number. A list, for each win anywhere in the group
 * takes one out, and a cold start sees as many wins as there are partitions; no hash is as fast.
 */
import type { MemberName, PartitionId } from './ids.ts'

export type Vacancy = {
  readonly partition: PartitionId
  readonly sinceMs: number
  attempts: number
  notBeforeMs: number
  /** Null until computed, and when nobody has room. */
  target: MemberName | null
  chosen: boolean
  chosenAtMs: number
}

export class VacancyTable {
  private readonly vacancies: (Vacancy | null)[] = []
  private count = 0
  /** None stands before this place. */
  private first = 0

  get size(): number {
    return this.count
  }

  get(partition: PartitionId): Vacancy | null {
    return partition < this.vacancies.length ? (this.vacancies[partition] as Vacancy | null) : null
  }

  /** One that is not in it yet. */
  add(vacancy: Vacancy): void {
    const { partition } = vacancy
    while (this.vacancies.length <= partition) this.vacancies.push(null)
    this.vacancies[partition] = vacancy
    this.count += 1
    this.first = Math.min(this.first, partition)
  }

  /** One that is in it. */
  remove({ partition }: Vacancy): void {
    this.vacancies[partition] = null
    this.count -= 1
  }

  /** By partition; those taken out meanwhile are passed over. */
  *[Symbol.iterator](): Iterator<Vacancy> {
    let isFirst = true
    for (let partition = this.first; partition < this.vacancies.length; partition += 1) {
      const vacancy = this.vacancies[partition] as Vacancy | null
      if (vacancy === null) continue
      if (isFirst) this.first = partition
      isFirst = false
      yield vacancy
    }
  }
}
