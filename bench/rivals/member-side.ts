/**
 * A member's side of the lines that it and the benchmark exchange; the members in Go and Python speak
 * the same.
 *
 *   from the member: `ready`                    connected, and waits
 *                    `+ <ms> <partition> ...`   believes since then that it holds them
 *                    `- <ms> <partition> ...`   no longer does; admitted work until then
 *                    `standing`                 stands by for all partitions of the others
 *                    `! <text>`                 something failed
 *   to the member:   `begin`, then `standby`; the end of its input ends it
 *
 * Times are the machine's monotonic milliseconds. A member that believes would admit work at any time: a
 * tick every 10 ms stands for that work, and a partition's `-` tells the last tick that found it held.
 * So a process that is woken after a pause may work before it hears that it has lost, as real work may.
 */
import { createInterface } from 'node:readline'
import { machineMs } from '../../src/dev/machine-time.ts'
import type { MemberTask } from './rival-kind.ts'

const TICK_MS = 10

export type MemberSide = {
  readonly task: MemberTask
  /** Partitions that this member asks for first; the others only in `standby`. */
  readonly own: readonly number[]
  readonly others: readonly number[]
  held(partitions: readonly number[]): void
  lost(partitions: readonly number[]): void
  failed(error: unknown): void
  /** Says that it is ready; resolves at `begin`. */
  begin(): Promise<void>
  /** Resolves at `standby`. */
  readonly standby: Promise<void>
  standing(): void
}

export function openMember(): MemberSide {
  const task: MemberTask = JSON.parse(process.argv.at(-1) ?? '')
  const all = Array.from({ length: task.partitions }, (_, partition) => partition)
  const isOwn = (partition: number) => partition % task.members === task.place
  const say = (...words: readonly (string | number)[]) =>
    process.stdout.write(`${words.join(' ')}\n`)
  const failed = (error: unknown) => say('!', String(error).replaceAll('\n', ' '))
  process.once('uncaughtException', (error) => {
    failed(error.stack)
    process.exit(1)
  })
  let tickMs = 0
  setInterval(() => {
    tickMs = machineMs()
  }, TICK_MS)
  const heard = new Map<string, () => void>()
  const hear = (word: string) => new Promise<void>((resolve) => heard.set(word, resolve))
  const [begin, standby] = [hear('begin'), hear('standby')]
  createInterface({ input: process.stdin })
    .on('line', (line) => heard.get(line)?.())
    .on('close', () => process.exit(0))
  return {
    task,
    own: all.filter(isOwn),
    others: all.filter((partition) => !isOwn(partition)),
    held(partitions) {
      if (partitions.length > 0) say('+', machineMs(), ...partitions)
    },
    lost(partitions) {
      if (partitions.length > 0) say('-', tickMs, ...partitions)
    },
    failed,
    begin() {
      say('ready')
      return begin
    },
    standby,
    standing: () => say('standing'),
  }
}
