/**
 * Plan: the Dockerfile as data: how the program starts and as whom, what its stages are for, and that the
 * build context holds what is copied.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY, readImage } from './image.ts'

const image = readImage()

test('Dockerfile, the process that it starts, is node itself and not root', () => {
  assert.deepEqual(image.entrypoint, ['node', 'dist/main.js'])
  assert.equal(image.stopSignal, 'SIGTERM')
  assert.match(image.user, /^[1-9]\d*:[1-9]\d*$/)
  assert.equal(image.environment['NODE_ENV'], 'production')
})

test('Dockerfile, its stages, build with all packages and ship production ones only', () => {
  assert.deepEqual(
    image.stages.map(({ base }) => base),
    Array.from({ length: 3 }, () => 'node:20-bookworm-slim'),
  )
  const runs = image.stages.map(({ instructions }) =>
    instructions.filter(({ keyword }) => keyword === 'RUN').map(({ words }) => words),
  )
  assert.deepEqual(runs, [
    ['npm ci --ignore-scripts', 'npm run build'],
    ['npm ci --omit=dev --ignore-scripts'],
    [],
  ])
  const stagesCopiedFrom = image.copies.flatMap(({ from }) => from ?? [])
  assert.deepEqual(stagesCopiedFrom, ['dependencies', 'build'])
})

test('Dockerfile, whatever it copies from the repository, exists and is not ignored', () => {
  const ignored = readFileSync(join(REPOSITORY, 'deploy/Dockerfile.dockerignore'), 'utf8')
  const lines = ignored.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  assert.equal(lines[0], '*', 'everything is ignored but what follows')
  const copied = image.stages
    .flatMap(({ instructions }) => instructions)
    .filter(({ keyword, words }) => keyword === 'COPY' && !words.includes('--from='))
    .flatMap(({ words }) => words.split(/\s+/).slice(0, -1))
  assert.deepEqual(
    new Set(lines.slice(1)),
    new Set(copied.map((path) => `!${path.replace(/^\.\//, '')}`)),
  )
  for (const path of copied) assert.ok(existsSync(join(REPOSITORY, path)), `${path} exists`)
})
