/**
 * The worker program as one file of plain JavaScript, made once per test process: its processes start
 * in half the time, and these tests start many.
 */
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

let made: Promise<string> | null = null

/** Path of the program. */
export function bundleWorkerProgram(): Promise<string> {
  made ??= bundle()
  return made
}

async function bundle(): Promise<string> {
  // Among the packages, since it imports them.
  const folder = new URL('../../../node_modules/.cache/tenure-e2e/', import.meta.url)
  const outfile = fileURLToPath(new URL(`worker-${process.pid}.mjs`, folder))
  process.once('exit', () => rmSync(outfile, { force: true }))
  await build({
    entryPoints: [fileURLToPath(new URL('./worker-program.ts', import.meta.url))],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    sourcemap: 'inline',
    logLevel: 'warning',
  })
  return outfile
}
