/** A copy of the source and the checks in a temporary folder, with a mutant's edits applied. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Edit } from './mutant.ts'
import { applyEdit } from './mutant.ts'

export const ROOT = dirname(dirname(import.meta.dirname))
/** What the model and the simulation import. */
const COPIED = ['src', 'test', 'package.json', 'tsconfig.json']

/** @throws Error naming the remedy when an edit no longer fits. */
export async function createMutatedTree(name: string, edits: readonly Edit[]): Promise<string> {
  const tree = await mkdtemp(join(tmpdir(), 'tenure-mutant-'))
  for (const entry of COPIED) await cp(join(ROOT, entry), join(tree, entry), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  for (const edit of edits) {
    const path = join(tree, edit.file)
    await writeFile(path, applyEdit(name, edit, await readFile(path, 'utf8')))
  }
  return tree
}

export async function removeTree(tree: string): Promise<void> {
  await rm(tree, { recursive: true, force: true })
}
