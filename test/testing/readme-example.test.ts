/** Plan: the example in the README is taken from there, bundled against the sources, and run as it is. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const README = new URL('../../README.md', import.meta.url)
const CACHE = new URL('../../node_modules/.cache/tenure-testing/', import.meta.url)
/** Imports and a blank line are not counted in it. */
const LINES_MAX = 15

function exampleOf(readme: string): string {
  const section = readme.split('\n## ').find((part) => part.startsWith('Testing your worker\n'))
  const example = section?.match(/```ts\n([\s\S]*?)```/)?.[1]
  assert.ok(example !== undefined, 'the README has an example under "Testing your worker"')
  return example
}

test("the README's test of a worker passes as it stands there, to its last line", async () => {
  const example = exampleOf(readFileSync(README, 'utf8'))
  const [, body = ''] = example.split('\n\n')
  assert.ok(body.trim().split('\n').length <= LINES_MAX, 'short enough to be read')
  mkdirSync(CACHE, { recursive: true })
  const outfile = fileURLToPath(new URL(`readme-${process.pid}.mjs`, CACHE))
  const sourceOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
  await build({
    stdin: {
      contents: `${example}\nconsole.log('the end')`,
      resolveDir: sourceOf('.'),
      loader: 'ts',
    },
    alias: { 'tenure/testing': sourceOf('src/testing/index.ts') },
    ...{ outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' },
    logLevel: 'warning',
  })
  const run = spawnSync(process.execPath, [outfile], { encoding: 'utf8' })
  assert.deepEqual([run.status, run.stdout], [0, 'the end\n'], run.stderr)
})
