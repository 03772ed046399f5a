/**
 * Plan: facts as data, one changed at a time; whole checks compared. NATS's greeting is read from a
 * socket that speaks as servers do, and from some that do not.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type Check, type DoctorFacts, examine } from '../../src/cli/doctor.ts'
import { readNatsInfo } from '../../src/cli/nats-info.ts'
import { run } from './cli-world.ts'

const STATUS = { version: '3.5.17', databaseBytes: 1_048_576, leaderKnown: true, alarms: [] }
const SOUND: DoctorFacts = {
  nodeVersion: '20.19.0',
  programs: [{ name: 'etcd', path: '/usr/bin/etcd', version: '3.5.17', fault: '' }],
  store: {
    endpoints: ['127.0.0.1:2379'],
    status: { ok: true, revision: 1, value: STATUS },
    roundTripsMs: [1, 2],
  },
  broadcasts: [
    { server: '127.0.0.1:4222', answer: { ok: true, version: '2.10.7', jetStream: true } },
  ],
  clock: { wallMs: Date.UTC(2026, 0, 1), driftMs: 0.4, sampledMs: 500 },
  disk: { folder: '/data', freeBytes: 20 * 1024 ** 3 },
  leaseTtlMs: 6000,
  marginMs: 1000,
}

function store(change: Partial<typeof STATUS> | { alarms: string[] }): DoctorFacts {
  const status = { ok: true as const, revision: 1, value: { ...STATUS, ...change } }
  return { ...SOUND, store: { ...SOUND.store, status } }
}

function check(facts: DoctorFacts, name: string): Check | undefined {
  return examine(facts).checks.find((each) => each.name === name)
}

test('doctor, sound facts, finds nothing to do', () => {
  const report = examine(SOUND)
  assert.equal(report.verdict, 'ok')
  assert.ok(report.checks.length >= 10)
  assert.ok(report.checks.every(({ verdict, remedy }) => verdict === 'ok' && remedy === ''))
})

test('doctor, versions with known faults, warns with the first sound one', () => {
  assert.deepEqual(examine(store({ version: '3.4.23' })).verdict, 'warn')
  assert.match(check(store({ version: '3.4.23' }), 'etcd version')?.detail ?? '', /#15247/)
  assert.match(check(store({ version: '3.4.30' }), 'etcd version')?.remedy ?? '', /3\.4\.31/)
  assert.equal(check(store({ version: '3.4.31' }), 'etcd version')?.verdict, 'ok')
  assert.equal(check(store({ version: '3.5.1' }), 'etcd version')?.verdict, 'fail')
  const nats = (version: string): DoctorFacts => ({
    ...SOUND,
    broadcasts: [{ server: 'n:1', answer: { ok: true, version, jetStream: false } }],
  })
  assert.equal(check(nats('2.9.10'), 'nats n:1')?.verdict, 'warn')
  assert.equal(check(nats('2.9.21'), 'nats n:1')?.verdict, 'ok')
  assert.equal(check({ ...SOUND, nodeVersion: '18.20.0' }, 'node')?.verdict, 'fail')
})

test('doctor, etcd down, without leader, alarmed or nearly full, says what to do', () => {
  const status = { ok: false as const, reason: 'not-executed' as const, detail: 'ECONNREFUSED ' }
  const down = examine({ ...SOUND, store: { ...SOUND.store, status, roundTripsMs: [] } })
  assert.deepEqual(
    down.checks.find(({ name }) => name === 'etcd'),
    {
      name: 'etcd',
      verdict: 'fail',
      detail: '127.0.0.1:2379: ECONNREFUSED (not-executed)',
      remedy: 'start etcd, or name it with --etcd-endpoints or TENURE_ETCD_ENDPOINTS',
    },
  )
  assert.equal(down.verdict, 'fail')
  assert.equal(check(store({ leaderKnown: false }), 'etcd leader')?.verdict, 'fail')
  assert.match(check(store({ alarms: ['NOSPACE'] }), 'etcd alarms')?.remedy ?? '', /disarm/)
  assert.match(check(store({ alarms: ['CORRUPT'] }), 'etcd alarms')?.remedy ?? '', /replace/)
  const nearlyFull = store({ databaseBytes: 1.8 * 1024 ** 3 })
  assert.equal(check(nearlyFull, 'etcd database')?.verdict, 'warn')
})

test('doctor, slow etcd, suggests settings that would hold', () => {
  const slow = (roundTripsMs: readonly number[]): DoctorFacts => ({
    ...SOUND,
    store: { ...SOUND.store, roundTripsMs },
  })
  const found = check(slow([20, 700]), 'etcd latency')
  assert.deepEqual(found, {
    name: 'etcd latency',
    verdict: 'warn',
    detail: 'slowest of 2 round trips 700.0 ms',
    remedy: 'in a new group use --lease-ttl 17s and --margin 1400ms',
  })
  const suggested = { ...slow([20, 700]), leaseTtlMs: 17_000, marginMs: 1400 }
  assert.equal(check(suggested, 'etcd latency')?.verdict, 'ok')
})

test('doctor, clocks that jump or stand in the past, and a full disk, are shown', () => {
  const clock = (change: Partial<DoctorFacts['clock']>): DoctorFacts => ({
    ...SOUND,
    clock: { ...SOUND.clock, ...change },
  })
  assert.equal(check(clock({ driftMs: -900 }), 'clock')?.verdict, 'warn')
  assert.equal(check(clock({ wallMs: 0 }), 'clock')?.verdict, 'fail')
  const full = { ...SOUND, disk: { folder: '/data', freeBytes: 5 } }
  assert.equal(check(full, 'disk')?.verdict, 'warn')
})

async function greet(context: TestContext, greeting: string | null): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    if (greeting === null) socket.end()
    else socket.write(greeting)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => server.close())
  return `nats://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('NATS greeting, a server, something else and nothing, are told apart', async (t) => {
  const info = 'INFO {"version":"2.9.10","jetstream":true,"tls_required":true} \r\n'
  assert.deepEqual(await readNatsInfo(await greet(t, info), 2000), {
    ok: true,
    version: '2.9.10',
    jetStream: true,
  })
  assert.deepEqual(await readNatsInfo(await greet(t, 'HTTP/1.1 400 Bad\r\n'), 2000), {
    ok: false,
    detail: 'something other than NATS answers there',
  })
  assert.deepEqual(await readNatsInfo(await greet(t, 'INFO {'), 50), {
    ok: false,
    detail: 'no greeting in time',
  })
  assert.deepEqual(await readNatsInfo(await greet(t, null), 2000), {
    ok: false,
    detail: 'closed without a greeting',
  })
})

test('tenure doctor, etcd and NATS down, reports both and exits 3', async () => {
  const refused = { ok: false as const, reason: 'not-executed' as const, detail: 'ECONNREFUSED' }
  const closed: string[] = []
  const store = {
    status: async () => refused,
    close: async () => void closed.push('store'),
  }
  const { exitCode, stdout } = await run(
    ['doctor', '--json', '--nats-servers', '127.0.0.1:1', '--etcd-endpoints', 'a:1'],
    { implementations: { openStore: async () => store as never } },
  )
  const report = JSON.parse(stdout) as { verdict: string; checks: Check[] }
  assert.equal(exitCode, 3)
  assert.equal(report.verdict, 'fail')
  assert.deepEqual(
    report.checks.filter(({ verdict }) => verdict === 'fail').map(({ name }) => name),
    ['etcd', 'nats 127.0.0.1:1'],
  )
  assert.deepEqual(closed, ['store'])
})
