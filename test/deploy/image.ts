/**
 * deploy/Dockerfile as data, and its last stage as a folder: what the image would hold under its working
 * directory, so that what the Dockerfile forgets to copy is missing here too.
 *
 * Stages are not built here. What the last one copies from them is had otherwise: `node_modules` as links
 * to the production dependencies and to nothing else, `dist` by the same compiler run.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type CleanUp, temporaryFolder } from '../support/servers.ts'

export const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))

export type Stage = {
  readonly base: string
  readonly name: string | null
  /** In order, keyword in upper case, continued lines joined. */
  readonly instructions: readonly { readonly keyword: string; readonly words: string }[]
}

export type Image = {
  readonly stages: readonly Stage[]
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
  readonly healthCheck: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly user: string
  readonly stopSignal: string
  /** What the last stage copies; `from` names another stage. */
  readonly copies: readonly Copy[]
}

type Copy = {
  readonly from: string | null
  readonly sources: readonly string[]
  readonly target: string
}

export function readImage(file = 'deploy/Dockerfile'): Image {
  const stages = parseStages(readFileSync(join(REPOSITORY, file), 'utf8'))
  const last = stages.at(-1)
  if (last === undefined) throw new Error(`${file} has no stage`)
  const all = (keyword: string) =>
    last.instructions.filter((one) => one.keyword === keyword).map(({ words }) => words)
  const one = (keyword: string) => all(keyword).at(-1) ?? ''
  return {
    stages,
    entrypoint: jsonWords(one('ENTRYPOINT')),
    command: jsonWords(one('CMD')),
    healthCheck: jsonWords(one('HEALTHCHECK').replace(/^.*?CMD\s+/, '')),
    environment: Object.fromEntries(
      all('ENV').map((words) => {
        const [name = '', ...value] = words.split('=')
        return [name, value.join('=')]
      }),
    ),
    user: one('USER'),
    stopSignal: one('STOPSIGNAL'),
    copies: all('COPY').map(parseCopy),
  }
}

/** The folder that the last stage makes; removed at the end. */
export async function assembleImage(cleanUp: CleanUp, image: Image): Promise<string> {
  const folder = await temporaryFolder(cleanUp)
  for (const { from, sources, target } of image.copies) {
    for (const source of sources) {
      const place = join(folder, target.endsWith('/') ? join(target, source) : target)
      mkdirSync(dirname(place), { recursive: true })
      if (from === null) cpSync(join(REPOSITORY, source), place, { recursive: true })
      else if (source === '/app/node_modules') linkProductionDependencies(place)
      else if (source === '/app/dist')
        cpSync(await builtFolder(cleanUp), place, { recursive: true })
      else throw new Error(`this test does not know how stage ${from} makes ${source}`)
    }
  }
  return folder
}

function linkProductionDependencies(place: string): void {
  const text = readFileSync(join(REPOSITORY, 'package.json'), 'utf8')
  const { dependencies } = JSON.parse(text) as { dependencies: Record<string, string> }
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(place, name)), { recursive: true })
    symlinkSync(join(REPOSITORY, 'node_modules', name), join(place, name))
  }
}

/** `dist` where it is not older than any source, else a build of its own. */
async function builtFolder(cleanUp: CleanUp): Promise<string> {
  const dist = join(REPOSITORY, 'dist')
  const builtMs = statSync(join(dist, 'main.js'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (builtMs >= newestMs(join(REPOSITORY, 'src'))) return dist
  const folder = await temporaryFolder(cleanUp)
  const compiler = join(REPOSITORY, 'node_modules/typescript/bin/tsc')
  const words = [compiler, '-p', 'tsconfig.build.json', '--outDir', folder]
  await promisify(execFile)(process.execPath, words, { cwd: REPOSITORY })
  return folder
}

function newestMs(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  return Math.max(
    ...files
      .filter((one) => one.isFile() && one.name.endsWith('.ts'))
      .map((one) => statSync(join(one.parentPath, one.name)).mtimeMs),
  )
}

function parseStages(text: string): readonly Stage[] {
  const stages: {
    base: string
    name: string | null
    instructions: Stage['instructions'][number][]
  }[] = []
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*(#|$)/.test(line))
    .join('\n')
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
  for (const line of lines) {
    const [, keyword = '', words = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? []
    if (keyword.toUpperCase() === 'FROM') {
      const [base = '', , name] = words.split(/\s+/)
      stages.push({ base, name: name ?? null, instructions: [] })
    } else stages.at(-1)?.instructions.push({ keyword: keyword.toUpperCase(), words })
  }
  return stages
}

function parseCopy(words: string): Copy {
  const parts = words.split(/\s+/)
  const from = parts.find((part) => part.startsWith('--from='))?.slice('--from='.length) ?? null
  const paths = parts.filter((part) => !part.startsWith('--'))
  const target = paths.at(-1) ?? ''
  return { from, sources: paths.slice(0, -1), target: normalize(target) }
}

/** The form that starts no shell; the other is refused, as it keeps SIGTERM from the program. */
function jsonWords(words: string): readonly string[] {
  if (!words.startsWith('[')) throw new Error(`not in the form without a shell: ${words}`)
  return JSON.parse(words) as string[]
}
