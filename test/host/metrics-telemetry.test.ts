// Plan: record events and sources, scrape, parse the text as Prometheus would, compare series.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createMetricsTelemetry } from '../../src/host/metrics-telemetry.ts'
import { EVENT_BY_TYPE, EVERY_EVENT, grantOf } from './every-event.ts'

type Series = { name: string; labels: Record<string, string>; value: number }

// `Nan` is what prom-client writes; Prometheus reads it in any case.
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[\d.e+-]+|Na[Nn]|[+-]?Inf)$/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g

/** @throws AssertionError for a line that is neither comment nor sample, or a name never declared. */
function parse(text: string): Series[] {
  const declared = new Set<string>()
  const series: Series[] = []
  for (const line of text.split('\n')) {
    if (line === '') continue
    const type = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line)
    if (type !== null) declared.add(type[1] as string)
    if (line.startsWith('# ')) continue
    const match = SAMPLE.exec(line)
    assert.ok(match !== null, `not a sample: ${line}`)
    const [, name = '', labels = '', value = ''] = match
    assert.ok(declared.has(name) || declared.has(name.replace(/_(bucket|sum|count)$/, '')), name)
    const pairs = [...labels.matchAll(LABEL)].map(([, key = '', text = '']) => [key, text])
    series.push({ name, labels: Object.fromEntries(pairs), value: Number(value) })
  }
  return series
}

async function scrape(telemetry: ReturnType<typeof createMetricsTelemetry>) {
  const series = parse(await telemetry.text())
  const value = (name: string, labels: Record<string, string> = {}) =>
    series.find(
      (each) =>
        each.name === `tenure_${name}` &&
        Object.entries(labels).every(([key, text]) => each.labels[key] === text),
    )?.value
  return { series, value }
}

const create = (monotonicMs?: () => number) =>
  createMetricsTelemetry({
    ...{ version: '1.2.3', processMetrics: false },
    ...(monotonicMs === undefined ? {} : { monotonicMs }),
  })

describe('metrics telemetry', () => {
  test('every event, recorded, shows in its metric in base units', async () => {
    const telemetry = create()
    for (const event of EVERY_EVENT) telemetry.record(event)
    const { value } = await scrape(telemetry)
    const group = { group: 'orders' }
    const expected: [string, Record<string, string>, number][] = [
      ['build_info', { version: '1.2.3', node: process.version }, 1],
      ['sessions_opened_total', { ...group, member: 'orders-2' }, 1],
      ['sessions_lost_total', { ...group, cause: 'deadline' }, 1],
      ['sessions_lost_total', { ...group, cause: 'evicted' }, 0],
      ['session_renewals_failed_total', group, 1],
      ['keepalive_round_trip_seconds_sum', group, 0.003],
      ['elections_total', { ...group, outcome: 'won' }, 1],
      ['grants_total', { ...group, how: 'election' }, 1],
      ['ownerless_seconds_sum', group, 6.4],
      ['acquire_seconds_sum', group, 0.012],
      ['drain_seconds_sum', group, 0.04],
      ['hand_off_seconds_sum', group, 0.045],
      ['partitions_lost_total', { ...group, cause: 'deadline' }, 1],
      ['handler_failures_total', { ...group, handler: 'acquire' }, 1],
      ['handler_failures_total', { ...group, handler: 'run' }, 1],
      ['handler_failures_total', { ...group, handler: 'release' }, 1],
      ['work_refused_total', { ...group, reason: 'draining' }, 1],
      ['rebalancer', group, 0],
      ['moves_planned_total', { ...group, reason: 'balance' }, 8],
      ['moves_total', { ...group, reason: 'balance', outcome: 'moved' }, 1],
      ['move_seconds_sum', group, 0.06],
      ['map_published_bytes_total', group, 340],
      ['map_gaps_total', group, 1],
      ['map_resyncs_total', group, 1],
      ['store_reachable', {}, 0],
      ['broadcast_connected', {}, 1],
      ['http_request_duration_seconds_count', { method: 'GET', status: '200' }, 1],
      ['alarms_total', { ...group, code: 'fence-ahead' }, 1],
      ['alarms_total', { ...group, code: 'store-rewound' }, 0],
    ]
    for (const [name, labels, wanted] of expected) {
      const label = `${name} ${JSON.stringify(labels)}`
      const got = value(name, labels)
      assert.ok(got !== undefined && Math.abs(got - wanted) < 1e-9, `${label}: ${got}`)
    }
  })

  test('series, ten thousand partitions later, are as many as after one', async () => {
    const telemetry = create()
    const record = (partition: number) => {
      for (const event of EVERY_EVENT) {
        telemetry.record('partition' in event ? { ...event, ...{ partition } } : event)
      }
      telemetry.record({ ...EVENT_BY_TYPE.granted, ...grantOf(partition) })
    }
    record(1)
    const before = (await scrape(telemetry)).series
    for (let partition = 2; partition < 10_000; partition++) record(partition)
    const after = (await scrape(telemetry)).series
    assert.equal(after.length, before.length)
    for (const { name, labels } of after) {
      assert.ok(!('partition' in labels) && !('session' in labels), name)
      assert.ok(!Object.values(labels).includes('17'), name)
    }
  })

  test('a source, registered, is asked at each scrape and leaves no series behind', async () => {
    const telemetry = create()
    let owned = 60
    const remove = telemetry.registerGaugeSource('orders', () => ({
      partitions: { owned, vacant: 4, notServing: 1, moving: 2, halted: 0 },
      members: 3,
      map: { incarnation: 1_764_440_000, revision: 9, ageMs: 1500, stale: true },
      member: { name: 'orders-2', owned: 20, notServing: 1, workInFlight: 5 },
    }))
    telemetry.registerGaugeSource('mail', () => ({ members: 1 }))
    const group = { group: 'orders' }
    const first = await scrape(telemetry)
    assert.equal(first.value('partitions_owned', group), 60)
    assert.equal(first.value('partitions_not_serving', group), 1)
    assert.equal(first.value('map_age_seconds', group), 1.5)
    assert.equal(first.value('map_stale', group), 1)
    assert.equal(first.value('member_partitions_owned', { ...group, member: 'orders-2' }), 20)
    assert.equal(first.value('member_work_in_flight', group), 5)
    owned = 61
    assert.equal((await scrape(telemetry)).value('partitions_owned', group), 61)
    remove()
    const last = await scrape(telemetry)
    assert.equal(last.value('partitions_owned', group), undefined)
    assert.equal(last.value('map_age_seconds', group), undefined)
    assert.equal(last.value('members', { group: 'mail' }), 1)
  })

  test('time left of a lease, between proofs, runs down and ends with the session', async () => {
    let nowMs = 1000
    const telemetry = create(() => nowMs)
    const left = async () => (await scrape(telemetry)).value('lease_left_seconds')
    telemetry.record({ ...EVENT_BY_TYPE['session-proved'], leftMs: 5000 })
    assert.equal(await left(), 5)
    nowMs += 1500
    assert.equal(await left(), 3.5)
    telemetry.record({ ...EVENT_BY_TYPE['session-ended'], cause: 'closed' })
    assert.equal(await left(), undefined)
  })

  test('durations of requests, in buckets, add up to the bucket above all', async () => {
    const telemetry = create()
    const request = EVENT_BY_TYPE['http-request']
    for (const tookMs of [0.05, 0.1, 0.2, 20, 9000]) telemetry.record({ ...request, tookMs })
    telemetry.record({ ...request, status: 404, tookMs: 1 })
    const { series, value } = await scrape(telemetry)
    const answered = series.filter(
      ({ name, labels }) => name.endsWith('duration_seconds_bucket') && labels['status'] === '200',
    )
    assert.deepEqual(
      answered.map(({ labels, value }) => [labels['le'], value]),
      [
        ...[
          ['0.0001', 2],
          ['0.00025', 3],
          ['0.0005', 3],
          ['0.001', 3],
          ['0.0025', 3],
        ],
        ...[
          ['0.01', 3],
          ['0.05', 4],
          ['0.25', 4],
          ['1', 4],
          ['2.5', 4],
          ['+Inf', 5],
        ],
      ],
    )
    assert.equal(value('http_request_duration_seconds_count', { status: '200' }), 5)
    assert.equal(value('http_request_duration_seconds_count', { status: '404' }), 1)
  })

  test('the store, not heard of yet, is neither up nor down', async () => {
    const { value } = await scrape(create())
    assert.equal(value('store_reachable'), undefined)
    assert.equal(value('broadcast_connected'), undefined)
  })

  test('process metrics, two registries in one process, show lag and do not clash', async () => {
    const [one, two] = [createMetricsTelemetry(), createMetricsTelemetry()]
    for (const telemetry of [one, two]) {
      const names = new Set((await scrape(telemetry)).series.map(({ name }) => name))
      assert.ok(names.has('nodejs_eventloop_lag_seconds') && names.has('process_cpu_seconds_total'))
    }
    assert.match(one.contentType, /^text\/plain; version=0\.0\.4/)
  })
})
