/** A client of a test's etcd as fences want it: it sends everything once. */
import { noop } from 'cockatiel'
import { Etcd3 } from 'etcd3'
import type { CleanUp } from './servers.ts'

export function connectEtcd(cleanUp: CleanUp, endpoint: string): Etcd3 {
  const client = new Etcd3({
    hosts: endpoint,
    faultHandling: { global: noop, host: () => noop },
  })
  cleanUp.after(() => client.close())
  return client
}
