/**
 * etcd as a stage for elections of the common kind: a key for each campaign below
 * `<prefix>election/<partition>/`, and the oldest there has won. The run's own etcd serves.
 */
import { noop } from 'cockatiel'
import { Etcd3, type IKeyValue, type Watcher } from 'etcd3'
import { machineMs } from '../../src/dev/machine-time.ts'
import type { Stage, StageSettings } from './rival-kind.ts'

const REVOKES_AT_ONCE = 64

export function openEtcdStage(
  { prefix, etcdEndpoints }: StageSettings,
  command: Stage['command'],
): Stage {
  const client = new Etcd3({
    hosts: [...etcdEndpoints],
    faultHandling: { global: noop, host: () => noop },
  })
  /** A watcher that is not cancelled tries again for ever, also when its client is closed. */
  const watchers = new Set<Watcher>()
  const campaigns = async () => (await client.getAll().prefix(prefix).exec()).kvs
  return {
    command,
    store: etcdEndpoints.join(','),
    async watchExpiry(member) {
      const standing = new Set(wonBy(member, await campaigns()))
      if (standing.size === 0) throw new Error(`${member} lost all its elections before the fault`)
      const watcher = await client.watch().prefix(prefix).create()
      watchers.add(watcher)
      const gone = new Promise<number>((resolve) => {
        watcher.on('delete', ({ key }) => {
          if (standing.delete(key.toString()) && standing.size === 0) resolve(machineMs())
        })
      })
      return async () => {
        const atMs = await gone
        watchers.delete(watcher)
        await watcher.cancel()
        return atMs
      }
    },
    async close() {
      await Promise.allSettled([...watchers].map((watcher) => watcher.cancel()))
      // Leases of dead members would run out during somebody else's measurement.
      const leases = [...new Set((await campaigns()).map(({ lease }) => lease))]
      while (leases.length > 0) {
        const some = leases.splice(0, REVOKES_AT_ONCE)
        // One that ran out meanwhile is gone as well.
        await Promise.allSettled(some.map((ID) => client.leaseClient.leaseRevoke({ ID })))
      }
      await client.delete().prefix(prefix)
      client.close()
    },
  }
}

/** Keys of the elections that this member has won. */
function wonBy(member: string, campaigns: readonly IKeyValue[]): readonly string[] {
  const winners = new Map<string, IKeyValue>()
  for (const campaign of campaigns) {
    const key = campaign.key.toString()
    const election = key.slice(0, key.lastIndexOf('/'))
    const first = winners.get(election)
    const isOlder =
      first === undefined || BigInt(campaign.create_revision) < BigInt(first.create_revision)
    if (isOlder) winners.set(election, campaign)
  }
  const won = [...winners.values()].filter(({ value }) => value.toString() === member)
  return won.map(({ key }) => key.toString())
}
