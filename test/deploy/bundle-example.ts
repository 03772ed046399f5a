/** An example of `deploy/examples` and what starts it, bundled from the sources as one file. */
import { mkdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { CleanUp } from '../support/servers.ts'

const CACHE = new URL('../../node_modules/.cache/tenure-e2e/', import.meta.url)
const sourceOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** @param start the text of a module that imports the example from `./deploy/examples/` */
export async function bundleExample(
  cleanUp: CleanUp,
  name: string,
  start: string,
): Promise<string> {
  mkdirSync(CACHE, { recursive: true })
  const outfile = fileURLToPath(new URL(`${name}-${process.pid}.mjs`, CACHE))
  await build({
    stdin: { contents: start, resolveDir: sourceOf('.') },
    alias: {
      'tenure/fence/postgres': sourceOf('src/fence/postgres.ts'),
      'tenure/work': sourceOf('src/composition/work.ts'),
      tenure: sourceOf('src/index.ts'),
    },
    ...{ outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' },
    logLevel: 'warning',
  })
  cleanUp.after(() => rmSync(outfile, { force: true }))
  return outfile
}
