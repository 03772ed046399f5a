/**
 * etcd3's own `Election`, one per partition, as its documentation shows: a campaign per election, and a
 * new one five seconds after an error. Twice: with the library's own fault policy, whose circuit breaker
 * opens when several campaigns are decided at once, and with a policy that does nothing.
 */
import { createRival } from './create-rival.ts'
import { openEtcdStage } from './etcd-stage.ts'
import { npmVersion, typescriptProgram } from './programs.ts'

/** Each member opens a lease and a stream per partition to stand by. */
const FAILOVER_PARTITIONS_MAX = 200

export const etcd3Election = election('default', 'etcd3 Election')
export const etcd3ElectionNoop = election('noop', 'etcd3 Election, no-op fault policy')

function election(policy: 'default' | 'noop', name: string) {
  return createRival({
    name,
    version: async () => npmVersion('etcd3'),
    isPresent: async () => null,
    promises: [
      'one elected campaign per key order in etcd',
      'a successor after the lease of the elected one has run out',
    ],
    doesNotPromise: [
      'that the old holder stops before the new one begins: it learns of a lost lease from etcd, or up to two lease times later by the wall clock',
      'a fencing token: a campaign does not tell its revision',
      'a drain, a planned move or a balanced share',
      ...(policy === 'default'
        ? ['that a campaign survives: several decided at once open its circuit breaker']
        : []),
      'one lease per member: it opens a lease for every partition and member',
    ],
    failoverPartitionsMax: FAILOVER_PARTITIONS_MAX,
    settleMs: 0,
    open: async (settings) =>
      openEtcdStage(settings, await typescriptProgram('etcd3-election-member.ts', policy)),
  })
}
