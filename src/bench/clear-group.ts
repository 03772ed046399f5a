/** Takes a measured group out of etcd, so that the next case finds the database as this one did. */
import { DEFAULT_KEY_PREFIX } from '../core/keys.ts'
import type { BenchContext } from './bench-types.ts'
import { createRawEtcd } from './raw-etcd.ts'

/** Embedded servers are compacted too; another's cluster keeps its history. */
export async function clearGroup({ servers }: BenchContext, group: string): Promise<void> {
  const etcd = createRawEtcd(servers.etcd)
  await etcd.clear(`${DEFAULT_KEY_PREFIX}${group}/`, servers.embedded)
  etcd.close()
}
