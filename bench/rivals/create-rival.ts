/**
 * A rival of the benchmark from what is its own (`rival-kind.ts`). Rivals take part in *acquire* up to
 * 10,000 partitions and in *failover*. Everything is bounded: what is not done by its deadline is told as
 * partial. In a quick run each is measured in the first round only, in a full one in each fifth: they take
 * most of the time.
 */
import { join } from 'node:path'
import type { Rival } from '../../src/bench/bench-types.ts'
import { measureAcquire } from './measure-acquire.ts'
import { measureFailover } from './measure-failover.ts'
import type { RivalKind } from './rival-kind.ts'

const ACQUIRE_PARTITIONS_MAX = 10_000
const FULL_EVERY = 5
const DEADLINE_MS = { quick: 20_000, full: 120_000 }

export function createRival(kind: RivalKind): Rival {
  const { name, version, isPresent, promises, doesNotPromise } = kind
  return {
    ...{ name, version, isPresent, promises, doesNotPromise },
    async run(scenario, settings) {
      const { round, runId, quick, partitions, caseName, leaseTtlMs, members } = settings
      if (quick ? round > 0 : round % FULL_EVERY > 0) return []
      const word = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
      const place = `${scenario}-${word}-${partitions}-${caseName.toLowerCase()}-${round}`
      const common = {
        prefix: `${runId}-${place}/`.replaceAll(/[^a-z0-9/-]/g, ''),
        folder: join(settings.folder, `rival-${place.replaceAll(/[^a-z0-9-]/g, '')}`),
        deadlineMs: quick ? DEADLINE_MS.quick : DEADLINE_MS.full,
        ...{ leaseTtlMs, members, etcdEndpoints: settings.etcdEndpoints },
      }
      if (scenario === 'acquire') {
        if (partitions > ACQUIRE_PARTITIONS_MAX) return []
        return measureAcquire(kind, { ...common, partitions })
      }
      if (scenario !== 'failover' || !isFault(caseName)) return []
      return measureFailover(kind, {
        ...common,
        fault: caseName,
        partitions: Math.min(partitions, kind.failoverPartitionsMax),
        partitionsAsked: partitions,
      })
    },
  }
}

function isFault(caseName: string): caseName is 'SIGKILL' | 'SIGSTOP' {
  return caseName === 'SIGKILL' || caseName === 'SIGSTOP'
}
