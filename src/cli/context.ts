/**
 * What a command may touch of the world, passed in by the composition root: streams, environment,
 * files, time and the signal that Ctrl-C fires.
 */
import type { Clock } from '../ports/clock.ts'

export type OutputStream = {
  write(text: string): void
  readonly isTTY: boolean
}

export type CliContext = {
  /** Data only. */
  readonly stdout: OutputStream
  /** Progress, hints and errors. */
  readonly stderr: OutputStream
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly workingFolder: string
  readonly version: string
  /** User and host name, recorded with every change that an operator makes. */
  readonly operator: string
  readonly clock: Clock
  /** Fires at SIGINT or SIGTERM; a command then ends soon, with exit code 130. */
  readonly interrupted: AbortSignal
  /** @throws an Error with `code` ENOENT when there is no such file. */
  readFile(path: string): string
  /** False when a process of that id is certainly gone. */
  isProcessAlive(pid: number): boolean
}
