/** The programs of members and what is installed of the rivals: never installed here (`setup.sh` does). */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import type { Stage } from './rival-kind.ts'

const run = promisify(execFile)

export function filePath(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}

/**
 * A member in TypeScript, made into one file of JavaScript: ten processes that each compile for themselves
 * would take longer than what is measured. It lies where the packages that it imports are found.
 */
export async function typescriptProgram(
  name: string,
  ...words: readonly string[]
): Promise<Stage['command']> {
  const outfile = filePath(`../../node_modules/.cache/tenure-bench/${name.replace('.ts', '.mjs')}`)
  await build({
    ...{ entryPoints: [filePath(name)], outfile, bundle: true, packages: 'external' },
    ...{ platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' },
  })
  return [process.execPath, outfile, ...words]
}

export function npmVersion(name: string): string {
  const text = readFileSync(new URL(`../../node_modules/${name}/package.json`, import.meta.url))
  return JSON.parse(text.toString()).version
}

/** Of a Debian package. */
export async function packageVersion(name: string): Promise<string> {
  const { stdout } = await run('dpkg-query', ['--show', name])
  return stdout.trim().split('\t')[1] ?? 'unknown'
}

/** Why a rival cannot run; null: all its files are there. */
export function whatIsMissing(files: Readonly<Record<string, string>>): string | null {
  const missing = Object.entries(files).flatMap(([name, path]) => (existsSync(path) ? [] : [name]))
  if (missing.length === 0) return null
  return `${missing.join(' and ')} not installed (bench/rivals/setup.sh does, with apt)`
}
