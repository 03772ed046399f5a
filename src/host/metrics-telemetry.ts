/**
 * Telemetry as Prometheus metrics, in a registry of its own. Events feed counters and histograms;
 * numbers that are a state (partitions owned, age of the map, time left of a lease) are asked for when
 * somebody scrapes, so they are current then and cost nothing between. A source that is taken away
 * takes its series along: no gauge shows what once was.
 */
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Telemetry, TelemetryEvent } from '../ports/telemetry.ts'
import { defineMetrics, type Metrics } from './metric-definitions.ts'
import { createRecorders } from './metric-recorders.ts'

/** State of one group as this process knows it; what it does not know is left out. */
export type GaugeNumbers = {
  readonly partitions?: {
    readonly owned: number
    readonly vacant: number
    readonly notServing: number
    readonly moving: number
    readonly halted: number
  }
  readonly members?: number
  readonly map?: {
    readonly incarnation: number
    readonly revision: number
    readonly ageMs: number
    readonly stale: boolean
  }
  /** Where a member of the group lives in this process. */
  readonly member?: {
    readonly name: string
    readonly owned: number
    readonly notServing: number
    readonly workInFlight: number
  }
}

const ASKED_AT_SCRAPE = [
  ...(['partitionsOwned', 'partitionsVacant', 'partitionsNotServing'] as const),
  ...(['partitionsMoving', 'partitionsHalted', 'members'] as const),
  ...(['mapAge', 'mapStale', 'mapRevision', 'mapIncarnation'] as const),
  ...(['memberOwned', 'memberNotServing', 'memberWork', 'leaseLeft'] as const),
]

export type MetricsTelemetry = Telemetry & {
  /** The text that `/metrics` answers. */
  text(): Promise<string>
  readonly contentType: string
  /** Asked at each scrape; returns what takes the source away. Several per group are fine. */
  registerGaugeSource(group: string, source: () => GaugeNumbers): () => void
}

export type MetricsOptions = {
  /** For `tenure_build_info`. */
  readonly version?: string
  readonly monotonicMs?: () => number
  /** The process's own metrics, event loop lag among them [true]; tests leave them out. */
  readonly processMetrics?: boolean
}

export function createMetricsTelemetry(options: MetricsOptions = {}): MetricsTelemetry {
  const monotonicMs = options.monotonicMs ?? (() => performance.now())
  const registry = new Registry()
  const metrics = defineMetrics(registry)
  metrics.buildInfo.set({ version: options.version ?? 'unknown', node: process.version }, 1)
  // Label-less gauges begin at 0, which would claim an outage that nobody saw.
  metrics.storeReachable.remove()
  metrics.broadcastConnected.remove()
  if (options.processMetrics !== false) collectDefaultMetrics({ register: registry })

  const sources = new Map<object, { group: string; source: () => GaugeNumbers }>()
  const deadlines = new Map<string, { group: string; member: string; atMs: number }>()
  const recorders = createRecorders(metrics, (group, member, leftMs) => {
    const key = `${group} ${member}`
    if (leftMs === null) deadlines.delete(key)
    else deadlines.set(key, { group, member, atMs: monotonicMs() + leftMs })
  })

  return {
    record(event) {
      const recorder = recorders[event.type] as (event: TelemetryEvent) => void
      recorder(event)
    },
    async text() {
      for (const name of ASKED_AT_SCRAPE) metrics[name].reset()
      for (const { group, source } of sources.values()) setGauges(metrics, group, source())
      const nowMs = monotonicMs()
      for (const { group, member, atMs } of deadlines.values()) {
        metrics.leaseLeft.set({ group, member }, (atMs - nowMs) / 1000)
      }
      return (await registry.metrics()) + metrics.http.text()
    },
    contentType: registry.contentType,
    registerGaugeSource(group, source) {
      const key = {}
      sources.set(key, { group, source })
      return () => {
        sources.delete(key)
      }
    },
  }
}

function setGauges(metrics: Metrics, group: string, numbers: GaugeNumbers): void {
  const { partitions, members, map, member } = numbers
  if (partitions !== undefined) {
    metrics.partitionsOwned.set({ group }, partitions.owned)
    metrics.partitionsVacant.set({ group }, partitions.vacant)
    metrics.partitionsNotServing.set({ group }, partitions.notServing)
    metrics.partitionsMoving.set({ group }, partitions.moving)
    metrics.partitionsHalted.set({ group }, partitions.halted)
  }
  if (members !== undefined) metrics.members.set({ group }, members)
  if (map !== undefined) {
    metrics.mapAge.set({ group }, map.ageMs / 1000)
    metrics.mapStale.set({ group }, map.stale ? 1 : 0)
    metrics.mapRevision.set({ group }, map.revision)
    metrics.mapIncarnation.set({ group }, map.incarnation)
  }
  if (member === undefined) return
  const labels = { group, member: member.name }
  metrics.memberOwned.set(labels, member.owned)
  metrics.memberNotServing.set(labels, member.notServing)
  metrics.memberWork.set(labels, member.workInFlight)
}
