/**
 * What tells one rival from another: where its claims are stored, which program a member runs, and when
 * the store itself lets a dead member's claims run out. How it is measured is the same for all
 * (`create-rival.ts`).
 */
import type { Rival } from '../../src/bench/bench-types.ts'

export type RivalKind = Pick<
  Rival,
  'name' | 'version' | 'isPresent' | 'promises' | 'doesNotPromise'
> & {
  /** With more, members that stand by would not get ready in bounded time on two cores. */
  readonly failoverPartitionsMax: number
  /** How long its settings make a cold start wait before it begins: a setting, and no cost. */
  readonly settleMs: number
  open(settings: StageSettings): Promise<Stage>
}

export type StageSettings = {
  /** Unique: keys begin with it. */
  readonly prefix: string
  readonly partitions: number
  readonly leaseTtlMs: number
  readonly etcdEndpoints: readonly string[]
  /** Of this run's own; for servers that the rival needs. */
  readonly folder: string
}

/** A store that is ready for members. */
export type Stage = {
  /** How a member's program is started; its task follows as JSON. */
  readonly command: readonly [program: string, ...words: string[]]
  /** Address or addresses of the store, as the member's program takes them. */
  readonly store: string
  /**
   * Called while the member lives. What it answers is called once, right after the fault, and resolves
   * with the moment (`machineMs`) at which the last of the member's claims has run out.
   */
  watchExpiry(member: string, partitions: readonly number[]): Promise<() => Promise<number>>
  /** Called when all members are gone. */
  close(): Promise<void>
}

/** What a member's program is told, as JSON in its last argument. */
export type MemberTask = {
  readonly store: string
  readonly prefix: string
  readonly member: string
  readonly place: number
  readonly members: number
  readonly partitions: number
  readonly leaseTtlMs: number
}
