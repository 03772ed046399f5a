/**
 * A mutant: one safeguard taken out of the source. It must be caught by name: the check named by `caughtBy`
 * has to fail for one of `promises`, found in its own words or in those of an invariant that production
 * code checks as it runs.
 */

export type Edit = {
  /** Path from the root of the repository. */
  readonly file: string
  /** Text that stands there exactly once. */
  readonly find: string
  readonly replace: string
}

export type Mutant = {
  readonly name: string
  /** What the source does instead. */
  readonly what: string
  readonly caughtBy: 'model' | 'simulation'
  readonly promises: readonly string[]
  readonly edits: readonly Edit[]
}

/** Rejects edits that no longer fit the source. */
export function applyEdit(mutant: string, edit: Edit, source: string): string {
  const parts = source.split(edit.find)
  if (parts.length === 2) return parts.join(edit.replace)
  const found = parts.length - 1
  throw new Error(
    `mutant ${mutant} has rotted: its text stands ${found} times in ${edit.file}, not once; ` +
      `write its \`find\` anew from the source, so that it takes out the same safeguard:\n${edit.find}`,
  )
}
