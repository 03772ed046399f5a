/** The contract suites' worlds on real servers, each server started for one suite and ended with it. */
import { createEtcdStore } from '../../src/etcd/etcd-store.ts'
import { createNatsBroadcast } from '../../src/nats/nats-broadcast.ts'
import { startEtcd, startNats } from '../support/servers.ts'
import {
  type BroadcastWorld,
  type CleanUp,
  freshNames,
  realWaiting,
  type StoreWorld,
} from './world.ts'

export async function etcdStoreWorld(cleanUp: CleanUp): Promise<StoreWorld> {
  const server = await startEtcd(cleanUp, {
    extraArgs: ['--experimental-watch-progress-notify-interval', '200ms'],
  })
  return {
    ...realWaiting,
    ...freshNames('etcd'),
    connect: () => {
      const store = createEtcdStore({ endpoints: [server.endpoint] })
      cleanUp.after(() => store.close())
      return store
    },
    compact: (revision) => compactEtcd(server.endpoint, revision),
    stopServer: () => server.kill(),
    startServer: () => server.restart(),
  }
}

export async function natsBroadcastWorld(cleanUp: CleanUp): Promise<BroadcastWorld> {
  const server = await startNats(cleanUp)
  return {
    ...realWaiting,
    freshSubject: freshNames('nats').freshSubject,
    connect: async () => {
      const broadcast = await createNatsBroadcast({ servers: [server.url] })
      cleanUp.after(() => broadcast.close())
      return broadcast
    },
    stopServer: () => server.kill(),
    startServer: () => server.restart(),
  }
}

/** The store port has no compaction: Tenure never asks for one. etcd's JSON gateway has. */
async function compactEtcd(endpoint: string, revision: number): Promise<void> {
  const response = await fetch(`${endpoint}/v3/kv/compaction`, {
    method: 'POST',
    body: JSON.stringify({ revision, physical: true }),
  })
  if (!response.ok) throw new Error(`compaction refused: ${await response.text()}`)
}
