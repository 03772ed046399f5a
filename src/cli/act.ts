/** How the command line's verbs are run. */
import type { Command } from 'commander'

/** Runs the action and keeps its exit code; commander's own return value is lost. */
export type Act = (
  action: (command: Command, ...words: (string | undefined)[]) => Promise<number>,
) => (...all: unknown[]) => Promise<void>
