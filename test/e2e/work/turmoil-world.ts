/** Servers, ledger, `serve` and consumer processes on this machine, ended with the test. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { GroupSettings } from '../../../src/core/group-config.ts'
import { startRole, startTenure } from '../../../src/dev/children.ts'
import {
  findFreePorts,
  type ServerProcess,
  startServerProcess,
} from '../../../src/dev/servers-process.ts'
import { type CleanUp, startEtcd, startNats, temporaryFolder } from '../../support/servers.ts'
import type { ConsumerProgramOptions } from './consumer-program.ts'

export type TurmoilWorld = {
  readonly natsUrl: string
  /** `serve`'s URL of the group. */
  readonly groupUrl: string
  readonly ledgerUrl: string
  readonly ledgerFile: string
  readonly workers: ReadonlyMap<string, ServerProcess>
}

export const GROUP = 'orders'

export async function startTurmoilWorld(
  cleanUp: CleanUp,
  options: {
    readonly members: readonly string[]
    readonly settings: GroupSettings
    readonly prefix: string
    readonly thinkMaxMs: number
    readonly effectMaxMs: number
    /** Streams must be there before workers read. */
    readonly prepare: (natsUrl: string) => Promise<void>
  },
): Promise<TurmoilWorld> {
  const logFolder = await temporaryFolder(cleanUp)
  const etcd = await startEtcd(cleanUp)
  const nats = await startNats(cleanUp, { jetStream: true })
  await options.prepare(nats.url)
  const [ledgerPort = 0, servePort = 0] = await findFreePorts(2)
  const ledgerUrl = `http://127.0.0.1:${ledgerPort}`
  const ledgerFile = join(logFolder, 'ledger.jsonl')
  const keep = async (starting: Promise<ServerProcess>) => {
    const started = await starting
    cleanUp.after(() => started.stop())
    return started
  }
  await keep(
    startRole(
      'ledger',
      {
        ...{ group: GROUP, port: ledgerPort, logFile: ledgerFile },
        effectMaxMs: options.effectMaxMs,
      },
      {
        ...{ name: 'ledger', logFolder, ports: [ledgerPort] },
        isReady: () => answers(`${ledgerUrl}/state`),
      },
    ),
  )
  const { partitions, leaseTtlMs, marginMs } = options.settings
  const flags = [`--partitions=${partitions}`, `--lease-ttl=${leaseTtlMs}ms`]
  await keep(
    startTenure(['serve', '--fenced', ...flags, `--margin=${marginMs}ms`], {
      ...{ name: 'serve', logFolder, ports: [servePort] },
      environment: {
        TENURE_GROUP: GROUP,
        TENURE_ETCD_ENDPOINTS: etcd.endpoint,
        TENURE_NATS_SERVERS: nats.url,
        TENURE_HTTP_PORT: String(servePort),
        TENURE_HTTP_TOKEN: undefined,
      },
      isReady: () => answers(`http://127.0.0.1:${servePort}/readyz`),
    }),
  )
  const program = await bundleProgram()
  cleanUp.after(() => rmSync(program, { force: true }))
  const workers = new Map<string, ServerProcess>()
  for (const member of options.members) {
    const given: ConsumerProgramOptions = {
      ...{ group: GROUP, member, settings: options.settings, prefix: options.prefix },
      ...{ etcd: etcd.endpoint, nats: nats.url, ledgerUrl, thinkMaxMs: options.thinkMaxMs },
    }
    const worker = startServerProcess({
      ...{ name: member, program: process.execPath, ports: [] },
      args: ['--enable-source-maps', program, JSON.stringify(given)],
      logFile: join(logFolder, `${member}.log`),
      isReady: async () => true,
    })
    workers.set(member, await keep(worker))
  }
  const groupUrl = `http://127.0.0.1:${servePort}/v1/groups/${GROUP}`
  return { natsUrl: nats.url, groupUrl, ledgerUrl, ledgerFile, workers }
}

/** The program as one file, since its processes are started often. */
async function bundleProgram(): Promise<string> {
  // Among the packages, since it imports them.
  const folder = new URL('../../../node_modules/.cache/tenure-e2e/', import.meta.url)
  const outfile = fileURLToPath(new URL(`consumer-${process.pid}.mjs`, folder))
  await build({
    entryPoints: [fileURLToPath(new URL('./consumer-program.ts', import.meta.url))],
    outfile,
    ...{ bundle: true, packages: 'external', platform: 'node', format: 'esm' },
    ...{ sourcemap: 'inline', logLevel: 'warning' },
  })
  return outfile
}

async function answers(url: string): Promise<boolean> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(1000) }).catch(() => null)
  await reply?.arrayBuffer()
  return reply?.ok === true
}
