/** The rivals that `npm run bench` measures beside Tenure, the best known first. */
import type { Rival } from '../../src/bench/bench-types.ts'
import { etcd3Election, etcd3ElectionNoop } from './etcd3-election.ts'
import { goElection } from './go-election.ts'
import { kazooPartitioner } from './kazoo-partitioner.ts'
import { leaseTable } from './lease-table.ts'
import { redlock } from './redlock.ts'

export const rivals: readonly Rival[] = [
  etcd3Election,
  etcd3ElectionNoop,
  goElection,
  kazooPartitioner,
  redlock,
  leaseTable,
]
