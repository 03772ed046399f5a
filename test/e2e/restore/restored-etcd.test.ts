/**
 * Plan: a snapshot of etcd is taken, 100 grants are made, etcd is restored from the snapshot: under
 * workers that remember, and under new ones that do not. Then etcd loses everything it had.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { comparePositions, type Position } from '../../../src/core/token.ts'
import type { AcceptLine } from '../../../src/evidence/accept-log.ts'
import { verifyAccepts } from '../../../src/evidence/verify-accepts.ts'
import { run as tenure } from '../../cli/cli-world.ts'
import { restoreSnapshot, saveSnapshot, wipe } from '../../support/etcd-snapshot.ts'
import { grantsOf } from '../support/group-history.ts'
import { createWorld, GROUP, type ServeProcess, SOON, type World } from '../support/world.ts'

const GRANTS = 100
const SETTINGS = {
  partitions: 4,
  leaseTtlMs: 4000,
  drain: { deadlineMs: 10_000, policy: 'wait' },
  budget: { movesPerMinute: 100_000 },
} as const

test('etcd restored under workers that remember, halts with an alarm until the incarnation is raised', async (t) => {
  const world = await createWorld(t, SETTINGS)
  const serve = await world.startServe()
  const workers = await world.startTogether(['w-1', 'w-2'])
  const snapshot = await saveSnapshot(world.etcd)
  await makeGrants(world, serve)
  const before = highestAccepted(world)
  await restoreSnapshot(world.etcd, snapshot)

  const alarms = await alarmsOf(world, serve, 'store-rewound')
  const { incarnation } = (await serve.get('')) as { incarnation: number }
  assert.ok(alarms.some((alarm) => alarm.includes(`raise the incarnation above ${incarnation}`)))
  await world.until(
    () => workers.every((one) => one.events('alarm').some(({ code }) => code === 'store-rewound')),
    { ...SOON, what: 'each worker raises the alarm' },
  )
  assert.ok(workers.every((one) => one.end() === null))

  const raised = await raise(serve)
  assert.ok(raised > incarnation)
  await worksAgain(world, serve, raised)
  assertNothingStale(world, before)
})

test('etcd restored under new workers, what their tokens are refused for halts them', async (t) => {
  const world = await createWorld(t, SETTINGS)
  const serve = await world.startServe()
  const workers = await world.startTogether(['w-1', 'w-2'])
  const snapshot = await saveSnapshot(world.etcd)
  await makeGrants(world, serve)
  for (const worker of workers) worker.signal('SIGKILL')
  await Promise.all(workers.map((worker) => worker.ended))
  await serve.process.kill()
  const before = highestAccepted(world)
  await restoreSnapshot(world.etcd, snapshot)

  const fresh = ['w-3', 'w-4'].map((member) => world.startWorker(member))
  const again = await world.startServe()
  await alarmsOf(world, again, 'fence-ahead')
  await world.until(async () => (await again.get(''))['halted'] === SETTINGS.partitions, {
    ...SOON,
    what: 'every partition halted',
  })
  assert.ok(fresh.some((one) => one.events('alarm').some(({ code }) => code === 'fence-ahead')))
  const raised = await raise(again)
  await worksAgain(world, again, raised)
  assertNothingStale(world, before)
})

test('etcd wiped, works at once under a new incarnation, and nobody raised anything', async (t) => {
  const world = await createWorld(t, SETTINGS)
  const serve = await world.startServe()
  await world.startTogether(['w-1', 'w-2'])
  const { incarnation } = (await serve.get('')) as { incarnation: number }
  const before = highestAccepted(world)
  await wipe(world.etcd)
  await worksAgain(world, serve, incarnation + 1)
  assert.deepEqual((await serve.get(''))['alarms'], [])
  const { config } = (await serve.get('/config')) as { config: Record<string, unknown> }
  assert.deepEqual(config, JSON.parse(JSON.stringify(world.config)), 'the settings it had')
  assertNothingStale(world, before)
})

/** Moves each partition to and fro until etcd has made that many grants more. */
async function makeGrants(world: World, serve: ServeProcess): Promise<void> {
  const from = grantsOf(world.history.events).length
  const partitions = Array.from({ length: SETTINGS.partitions }, (_, partition) => partition)
  await Promise.all(
    partitions.map(async (partition) => {
      for (let grants = 0; grants < GRANTS / SETTINGS.partitions; grants += 1) {
        const generation = world.generation(partition)
        const to = world.owners()[partition] === 'w-1' ? 'w-2' : 'w-1'
        await serve.move(partition, to)
        await world.until(() => world.generation(partition) > generation, {
          ...SOON,
          what: `partition ${partition} moved`,
        })
      }
    }),
  )
  const made = grantsOf(world.history.events).length - from
  assert.ok(made >= GRANTS, `${made} grants`)
}

function highestAccepted({ resource }: World): ReadonlyMap<number, Position> {
  const highest = new Map<number, Position>()
  for (const { token, sealed } of resource.seals) {
    const known = highest.get(token.partition)
    if (sealed && (known === undefined || comparePositions(token, known) > 0)) {
      highest.set(token.partition, token)
    }
  }
  return highest
}

async function alarmsOf(world: World, serve: ServeProcess, code: string): Promise<string[]> {
  return world.until(
    async () => {
      const alarms = (await serve.get(''))['alarms'] as string[]
      return alarms.some((alarm) => alarm.startsWith(`${code}: `)) ? alarms : null
    },
    { ...SOON, what: `the alarm ${code} in the group's summary` },
  )
}

async function raise(serve: ServeProcess): Promise<number> {
  const words = ['incarnation', 'raise', '--reason', 'restored from the backup', '--json']
  const url = new URL(serve.url).origin
  const { exitCode, stdout, stderr } = await tenure([...words, '--url', url, '--group', GROUP])
  assert.equal(exitCode, 0, stderr)
  return (JSON.parse(stdout) as { incarnation: number }).incarnation
}

/** Every partition has an effect under the incarnation or a later one, and no alarm stands. */
async function worksAgain(world: World, serve: ServeProcess, incarnation: number): Promise<void> {
  await world.until(
    () => {
      const done = new Set<number>()
      for (const { token, outcome } of world.resource.effects) {
        if (outcome === 'applied' && token.incarnation >= incarnation) done.add(token.partition)
      }
      return done.size === SETTINGS.partitions
    },
    { ...SOON, what: `effects under incarnation ${incarnation}` },
  )
  await world.until(
    async () => {
      const { owned, halted, alarms } = (await serve.get('')) as Record<string, unknown>
      return owned === SETTINGS.partitions && halted === 0 && (alarms as string[]).length === 0
    },
    { ...SOON, what: 'all owned, no alarm' },
  )
}

/** The resource never accepted a token below, or beside, one that it had accepted (S3). */
function assertNothingStale({ resource }: World, before: ReadonlyMap<number, Position>): void {
  const log: (readonly [number, AcceptLine])[] = [
    ...resource.seals
      .filter(({ sealed }) => sealed)
      .map(({ token, atMs }) => [atMs, { type: 'sealed', token, atMs }] as const),
    ...resource.effects.map((effect) => {
      return [effect.endMs, { ...effect, type: 'effect', input: null }] as const
    }),
  ]
  const inOrder = log.sort(([a], [b]) => a - b).map(([, line]) => line)
  const { violations } = verifyAccepts(inOrder, new Set(), () => true)
  assert.deepEqual(violations, [])
  for (const [partition, position] of before) {
    const last = resource.effects.findLast(
      ({ token, outcome }) => token.partition === partition && outcome === 'applied',
    )
    assert.ok(last !== undefined && comparePositions(last.token, position) > 0)
  }
}
