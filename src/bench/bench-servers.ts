/** etcd and NATS of the benchmark: the user's, or embedded ones in a folder of this run. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { findServerProgram, startEtcdServer, startNatsServer } from '../dev/servers.ts'
import type { EtcdStoreOptions } from '../etcd/etcd-store.ts'
import type { NatsOptions } from '../nats/nats-link.ts'
import type { BenchServers } from './bench-types.ts'
import { createRawEtcd } from './raw-etcd.ts'

export type GivenServers = {
  /** Null: embedded. */
  readonly etcd: EtcdStoreOptions | null
  readonly nats: NatsOptions | null
}

/** A whole run writes some millions of records before it compacts them away. */
const QUOTA_BYTES = 8 * 1024 ** 3

export async function openBenchServers(
  given: GivenServers,
  folder: string,
): Promise<BenchServers & { stop(): Promise<void> }> {
  const etcd =
    given.etcd === null
      ? await startEtcdServer({
          directory: join(folder, 'etcd'),
          extraArgs: ['--quota-backend-bytes', String(QUOTA_BYTES)],
        })
      : null
  const nats =
    given.nats === null ? await startNatsServer({ directory: join(folder, 'nats') }) : null
  return {
    etcd: given.etcd ?? { endpoints: [etcd?.endpoint ?? ''] },
    nats: given.nats ?? { servers: [nats?.url ?? ''] },
    embedded: etcd !== null,
    stop: async () => {
      await Promise.all([etcd?.stop(), nats?.stop()])
    },
  }
}

export async function versionsOf(servers: BenchServers): Promise<Record<string, string>> {
  const etcd = createRawEtcd(servers.etcd)
  try {
    return {
      node: process.version,
      etcd: (await etcd.version()).version,
      nats: natsVersion(servers.embedded),
    }
  } finally {
    etcd.close()
  }
}

function natsVersion(embedded: boolean): string {
  if (!embedded) return 'as given'
  const text = execFileSync(findServerProgram('nats-server'), ['--version'], { encoding: 'utf8' })
  return text.replace('nats-server:', '').trim()
}
