/**
 * The processes' programs, each as one file of plain JavaScript: they are started often, and so in half the
 * time.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export type Programs = Readonly<Record<'main' | 'worker' | 'producer' | 'proxy' | 'probe', string>>

/** @param endings removes them */
export async function bundlePrograms(endings: (() => Promise<unknown>)[]): Promise<Programs> {
  const sources = {
    main: '../../src/main.ts',
    worker: './worker-program.ts',
    producer: './producer-program.ts',
    proxy: './proxy-program.ts',
    probe: './probe-program.ts',
  }
  // Two folders below package.json, as `src` is, and among the packages.
  const folder = fileURLToPath(new URL('../../node_modules/.tenure-chaos/', import.meta.url))
  const made = Object.entries(sources).map(async ([name, source]) => {
    const outfile = join(folder, `${name}-${process.pid}.mjs`)
    endings.push(async () => rmSync(outfile, { force: true }))
    await build({
      entryPoints: [fileURLToPath(new URL(source, import.meta.url))],
      outfile,
      ...{ bundle: true, packages: 'external', platform: 'node', format: 'esm' },
      ...{ sourcemap: 'inline', logLevel: 'warning' },
    })
    return [name, outfile] as const
  })
  return Object.fromEntries(await Promise.all(made)) as Programs
}
