/** Servers, `serve` and processes of one worker program on this machine, ended with the test. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { GroupSettings } from '../../../src/core/group-config.ts'
import { startTenure } from '../../../src/dev/children.ts'
import {
  findFreePorts,
  type ServerProcess,
  startServerProcess,
} from '../../../src/dev/servers-process.ts'
import { eventually } from '../../support/eventually.ts'
import { type CleanUp, startEtcd, startNats, temporaryFolder } from '../../support/servers.ts'

export type TurmoilServers = {
  readonly etcd: string
  readonly nats: string
  readonly logFolder: string
}

export type TurmoilWorld = TurmoilServers & {
  /** `serve`'s URL of the group. */
  readonly groupUrl: string
  readonly workers: ReadonlyMap<string, ServerProcess>
}

/** What each worker program is given, as JSON, beside what its test adds. */
export type WorkerProgramOptions = {
  readonly group: string
  readonly member: string
  readonly settings: GroupSettings
  readonly etcd: string
  readonly nats: string
  /** Folder for logs of the program's own. */
  readonly logFolder: string
}

export const GROUP = 'orders'
const OWNED_TIMEOUT_MS = 60_000

/** Resolves once the workers own every partition. */
export async function startTurmoilWorld(
  cleanUp: CleanUp,
  options: {
    readonly members: readonly string[]
    readonly settings: GroupSettings & { readonly partitions: number }
    /** File beside this one. */
    readonly program: string
    /** Makes what workers need, and says what else their program is given. */
    readonly prepare: (servers: TurmoilServers) => Promise<object>
  },
): Promise<TurmoilWorld> {
  const { settings } = options
  const logFolder = await temporaryFolder(cleanUp)
  const etcd = await startEtcd(cleanUp)
  const nats = await startNats(cleanUp, { jetStream: true })
  const servers = { etcd: etcd.endpoint, nats: nats.url, logFolder }
  const given = await options.prepare(servers)
  const groupUrl = await startServe(cleanUp, servers, settings)
  const program = await bundleProgram(cleanUp, options.program)
  const workers = new Map<string, ServerProcess>()
  for (const member of options.members) {
    const all: WorkerProgramOptions = { ...given, ...servers, group: GROUP, member, settings }
    const worker = await startServerProcess({
      ...{ name: member, program: process.execPath, ports: [] },
      args: ['--enable-source-maps', program, JSON.stringify(all)],
      logFile: join(logFolder, `${member}.log`),
      isReady: async () => true,
    })
    cleanUp.after(() => worker.stop())
    workers.set(member, worker)
  }
  await eventually(() => allOwned(groupUrl, settings.partitions), {
    ...{ timeoutMs: OWNED_TIMEOUT_MS, what: 'all partitions owned' },
  })
  return { ...servers, groupUrl, workers }
}

async function startServe(
  cleanUp: CleanUp,
  { etcd, nats, logFolder }: TurmoilServers,
  { partitions, leaseTtlMs, marginMs, fenced }: GroupSettings,
): Promise<string> {
  const [port = 0] = await findFreePorts(1)
  const flags = [`--partitions=${partitions}`, `--lease-ttl=${leaseTtlMs}ms`]
  if (fenced === true) flags.push('--fenced')
  const serve = await startTenure(['serve', ...flags, `--margin=${marginMs}ms`], {
    ...{ name: 'serve', logFolder, ports: [port] },
    environment: {
      TENURE_GROUP: GROUP,
      TENURE_ETCD_ENDPOINTS: etcd,
      TENURE_NATS_SERVERS: nats,
      TENURE_HTTP_PORT: String(port),
      TENURE_HTTP_TOKEN: undefined,
    },
    isReady: () => answers(`http://127.0.0.1:${port}/readyz`),
  })
  cleanUp.after(() => serve.stop())
  return `http://127.0.0.1:${port}/v1/groups/${GROUP}`
}

export type PartitionSeen = {
  readonly partition: number
  readonly generation: number
  readonly phase: string
  readonly owner: { readonly member: string } | null
}

export async function partitionsSeen(groupUrl: string): Promise<readonly PartitionSeen[]> {
  const reply = await fetch(`${groupUrl}/partitions?limit=1000`).catch(() => null)
  if (reply?.ok !== true) return []
  return ((await reply.json()) as { partitions: PartitionSeen[] }).partitions
}

async function allOwned(groupUrl: string, count: number): Promise<boolean> {
  const partitions = await partitionsSeen(groupUrl)
  return partitions.length === count && partitions.every(({ owner }) => owner !== null)
}

/** As one file, for it to start fast. */
async function bundleProgram(cleanUp: CleanUp, name: string): Promise<string> {
  // Among the packages, since it imports them.
  const folder = new URL('../../../node_modules/.cache/tenure-e2e/', import.meta.url)
  const outfile = fileURLToPath(new URL(`${name}-${process.pid}.mjs`, folder))
  await build({
    entryPoints: [fileURLToPath(new URL(name, import.meta.url))],
    outfile,
    ...{ bundle: true, packages: 'external', platform: 'node', format: 'esm' },
    ...{ sourcemap: 'inline', logLevel: 'warning' },
  })
  cleanUp.after(() => rmSync(outfile, { force: true }))
  return outfile
}

export async function answers(url: string): Promise<boolean> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(1000) }).catch(() => null)
  await reply?.arrayBuffer()
  return reply?.ok === true
}
