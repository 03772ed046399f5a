/**
 * The members of a rival, one process each, and what they say of themselves (`member-side.ts` has the
 * words). Every claim is kept from its beginning to its end, as its own holder saw it, so that the logs
 * of two holders of one partition can be held against each other.
 *
 * A member ends when its input closes, and so when this process ends. Not promised: one that is stopped
 * (SIGSTOP) when this process is killed stays until somebody ends it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { MemberTask, Stage } from './rival-kind.ts'

/** From when to when a member believed that it held a partition. */
export type Claim = {
  readonly place: number
  readonly partition: number
  readonly fromMs: number
  /** Null: it still does. */
  toMs: number | null
}

export type Members = {
  readonly claims: readonly Claim[]
  /** How many different partitions have a holder, or have one beside that member. */
  held(beside?: number): number
  heldBy(place: number): readonly number[]
  nameOf(place: number): string
  say(word: 'begin' | 'standby'): void
  /** How many said that they stand by. */
  standing(): number
  signal(place: number, name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
  /** False: not within that time. Looked at whenever a member says something. */
  until(holds: () => boolean, timeoutMs: number): Promise<boolean>
  /** How often members said that something failed, and the first such text. */
  failures(): { readonly count: number; readonly first: string }
  close(): Promise<void>
}

const READY_TIMEOUT_MS = 120_000
const STDERR_KEPT = 600

export async function startMembers(
  stage: Stage,
  task: Omit<MemberTask, 'store' | 'member' | 'place'>,
): Promise<Members> {
  const crew = new Crew()
  for (let place = 0; place < task.members; place += 1) {
    const [program, ...words] = stage.command
    const own: MemberTask = { ...task, store: stage.store, member: memberName(place), place }
    crew.add(spawn(program, [...words, JSON.stringify(own)], { stdio: 'pipe' }))
  }
  const isOver = () => crew.ready === task.members || crew.gone > 0
  await crew.until(isOver, READY_TIMEOUT_MS)
  if (crew.ready === task.members) return crew
  const { first } = crew.failures()
  await crew.close()
  throw new Error(`${crew.ready} of ${task.members} members were ready in time; ${first}`)
}

function memberName(place: number): string {
  return `member-${place}`
}

class Crew implements Members {
  readonly claims: Claim[] = []
  ready = 0
  gone = 0
  #standing = 0
  #failures = 0
  #firstFailure = ''
  readonly #children: ChildProcess[] = []
  readonly #open: Map<number, Claim>[] = []
  /** How many members hold a partition; those that none holds are absent. */
  readonly #holders = new Map<number, number>()
  readonly #waiting = new Set<() => void>()
  readonly #killAll = () => {
    for (const child of this.#children) child.kill('SIGKILL')
  }

  constructor() {
    process.once('exit', this.#killAll)
  }

  add(child: ChildProcess): void {
    const place = this.#children.push(child) - 1
    const open = new Map<number, Claim>()
    this.#open.push(open)
    // A member that was killed breaks its input before its end is known.
    child.stdin?.on('error', () => {})
    child.on('error', (error) => this.#failed(error.message))
    child.stderr?.on('data', (text) => this.#failed(String(text)))
    child.once('exit', () => {
      this.gone += 1
      for (const partition of open.keys()) this.#count(partition, -1)
      open.clear()
      this.#heard()
    })
    if (child.stdout === null) return
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#take(place, line)
      this.#heard()
    })
  }

  #take(place: number, line: string): void {
    const [word, ...rest] = line.split(' ')
    const [atMs = 0, ...partitions] = rest.map(Number)
    const open = this.#open[place]
    if (word === 'ready') this.ready += 1
    else if (word === 'standing') this.#standing += 1
    else if (word === '+') {
      for (const partition of partitions) {
        const claim: Claim = { place, partition, fromMs: atMs, toMs: null }
        this.claims.push(claim)
        if (open?.has(partition) === false) this.#count(partition, 1)
        open?.set(partition, claim)
      }
    } else if (word === '-') {
      for (const partition of partitions) {
        const claim = open?.get(partition)
        if (claim !== undefined) claim.toMs = atMs
        if (open?.delete(partition)) this.#count(partition, -1)
      }
    } else this.#failed(rest.join(' '))
  }

  #count(partition: number, change: 1 | -1): void {
    const holders = (this.#holders.get(partition) ?? 0) + change
    if (holders === 0) this.#holders.delete(partition)
    else this.#holders.set(partition, holders)
  }

  #failed(text: string): void {
    this.#failures += 1
    if (this.#firstFailure === '') this.#firstFailure = text.trim().slice(0, STDERR_KEPT)
  }

  #heard(): void {
    for (const look of this.#waiting) look()
  }

  held(beside?: number): number {
    const beyond = beside === undefined ? undefined : this.#open[beside]
    let held = this.#holders.size
    // Those that only that member holds.
    for (const one of beyond?.keys() ?? []) if (this.#holders.get(one) === 1) held -= 1
    return held
  }

  heldBy(place: number): readonly number[] {
    return [...(this.#open[place]?.keys() ?? [])]
  }

  nameOf(place: number): string {
    return memberName(place)
  }

  say(word: 'begin' | 'standby'): void {
    for (const child of this.#children) child.stdin?.write(`${word}\n`)
  }

  standing(): number {
    return this.#standing
  }

  signal(place: number, name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#children[place]?.kill(name)
  }

  until(holds: () => boolean, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (inTime: boolean) => {
        this.#waiting.delete(look)
        clearTimeout(timer)
        resolve(inTime)
      }
      const look = () => {
        if (holds()) end(true)
      }
      const timer = setTimeout(() => end(holds()), timeoutMs)
      this.#waiting.add(look)
      look()
    })
  }

  failures() {
    return { count: this.#failures, first: this.#firstFailure }
  }

  async close(): Promise<void> {
    process.removeListener('exit', this.#killAll)
    const running = this.#children.filter((one) => one.exitCode === null && one.signalCode === null)
    // SIGKILL ends a stopped process too.
    await Promise.all(
      running.map(async (child) => {
        const gone = child.pid === undefined ? null : once(child, 'exit')
        child.kill('SIGKILL')
        await gone
      }),
    )
  }
}
