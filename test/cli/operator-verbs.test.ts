/**
 * Plan: operators' verbs against the real HTTP interface over a plain group; what reaches the group,
 * what is printed, and the exit code.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { memberName } from '../../src/core/ids.ts'
import type { RebalanceRecord } from '../../src/core/operator-records.ts'
import type { HttpServerOptions } from '../../src/http/http-server.ts'
import { vacant } from '../http/plain-groups.ts'
import { serveGroup } from '../http/served-group.ts'
import { eventually } from '../support/eventually.ts'
import { run, type World } from './cli-world.ts'

async function served(t: TestContext, options: Partial<HttpServerOptions> = {}) {
  const { group, server } = await serveGroup(t, options)
  const { url } = await server.listen()
  const tenure = (line: string, world: World = {}) =>
    run(line.split(' '), { ...world, variables: { TENURE_URL: url, ...world.variables } })
  const json = async (line: string): Promise<Record<string, unknown>> => {
    const { exitCode, stdout, stderr } = await tenure(`${line} --json`)
    assert.equal(exitCode, 0, stderr)
    return JSON.parse(stdout)
  }
  return { group, url, tenure, json }
}

function finish(record: RebalanceRecord | undefined, state: RebalanceRecord['state']): void {
  if (record === undefined) assert.fail('no rebalance was asked for')
  Object.assign(record, { state, planned: 4, moved: state === 'done' ? 4 : 1, finishedAtMs: 2 })
}

test('tenure status, a healthy group, says stable and every count', async (t) => {
  const { tenure, json, url } = await served(t)
  const { stdout, stderr } = await tenure('status')
  assert.match(stdout, /^orders {2}stable\n/)
  assert.match(stdout, /8: 8 owned, 0 vacant, 0 moving, 0 halted, 0 not serving/)
  assert.equal(stderr, '')
  const reply = await json('status')
  assert.equal(reply['url'], url)
  assert.equal((reply['groups'] as { group: string }[])[0]?.group, 'orders')
})

test('tenure status, a vacant partition or an old map, says degraded', async (t) => {
  const { group, tenure } = await served(t)
  group.partitions[3] = vacant(3, 'its owner is gone')
  assert.match((await tenure('status')).stdout, /^orders {2}degraded/)
  group.partitions[3] = { ...vacant(3, 'disabled'), partition: 3 }
  Object.assign(group, { stale: true, ageMs: 9000 })
  const { stdout } = await tenure('status')
  assert.match(stdout, /9s old: STALE/)
})

test('tenure partitions, filters and pages, shows what was asked for', async (t) => {
  const { group, tenure, json } = await served(t)
  group.partitions[3] = vacant(3, 'its owner is gone')
  const { stdout } = await tenure('partitions --state vacant')
  assert.match(stdout, /^PARTITION +PHASE +OWNER/)
  assert.match(stdout, /^3 +vacant +- +5 +no +- +its owner is gone$/m)
  assert.equal(stdout.trimEnd().split('\n').length, 2)
  const owned = await json('partitions --owner orders-0')
  assert.deepEqual(
    (owned['partitions'] as { partition: number }[]).map(({ partition }) => partition),
    [0, 2, 4, 6],
  )
  const limited = await json('partitions --limit 3')
  assert.equal((limited['partitions'] as unknown[]).length, 3)
  const one = await tenure('partitions 3')
  assert.match(one.stdout, /^owner +nobody$/m)
  assert.equal((await tenure('partitions 99')).exitCode, 4)
  assert.equal((await tenure('partitions three')).exitCode, 2)
})

test('tenure partitions, more than a page, fetches them all', async (t) => {
  const { group, json } = await served(t)
  const first = group.partitions[0]
  if (first === undefined) assert.fail()
  group.partitions.splice(0)
  for (let partition = 0; partition < 2345; partition++) {
    group.partitions.push({ ...first, partition })
  }
  Object.assign(group, { config: { ...group.config, partitions: 2345 } })
  const { partitions } = await json('partitions')
  const numbers = (partitions as { partition: number }[]).map(({ partition }) => partition)
  assert.deepEqual(
    numbers,
    Array.from({ length: 2345 }, (_, index) => index),
  )
})

test('tenure members and owner, text and JSON, say the same', async (t) => {
  const { group, tenure, json } = await served(t)
  assert.match((await tenure('members')).stdout, /^orders-1 +active +4 +1/m)
  assert.equal(((await json('members'))['members'] as unknown[]).length, 2)
  const { stdout } = await tenure('owner cust')
  assert.equal(stdout, 'orders-0 at orders-0:7000 owns partition 4, generation 5 (serving)\n')
  assert.equal((await json('owner cust'))['partition'], 4)
  group.partitions[4] = vacant(4, 'disabled by ann')
  const nobody = await tenure('owner cust')
  assert.deepEqual(
    [nobody.exitCode, nobody.stdout],
    [0, 'nobody owns partition 4: disabled by ann\n'],
  )
})

test('operator changes, each verb, reaches the group with who asked and why', async (t) => {
  const { group, json, tenure } = await served(t)
  const by = { by: 'ann@test', why: '' }
  const because = { by: 'ann@test', why: 'deploy' }
  await json('cordon orders-0 --reason deploy')
  await json('uncordon orders-0')
  await json('freeze --reason deploy')
  await json('unfreeze')
  await json('disable')
  await json('disable --partition 3')
  await json('enable --partition 3')
  await json('enable')
  await json('evict orders-1')
  assert.equal((await json('incarnation raise'))['incarnation'], 1_764_440_001)
  assert.equal((await json('incarnation'))['incarnation'], 1_764_440_000)
  await json('move 3 orders-0 --reason deploy')
  await json('drain orders-1')
  await json('rebalance --id once')
  await json('rebalance cancel once')
  await json('undrain orders-1')
  assert.deepEqual(
    group.calls.map((call) => [call.name, ...call.arguments]),
    [
      ['setCordon', 'orders-0', because],
      ['clearCordon', 'orders-0'],
      ['setFreeze', { ...because, untilMs: null }],
      ['clearFreeze'],
      ['setDisabled', null, by],
      ['setDisabled', 3, by],
      ['clearDisabled', 3],
      ['clearDisabled', null],
      ['evict', 'orders-1', by],
      ['raiseIncarnation', by],
      ['requestRebalance', { type: 'move', partition: 3, to: 'orders-0' }, because, undefined],
      ['requestRebalance', { type: 'drain', member: 'orders-1' }, by, undefined],
      ['requestRebalance', { type: 'balance' }, by, 'once'],
      ['cancelRebalance', 'once'],
      ['cancelRebalance', 'rebalance-1'],
      ['clearCordon', 'orders-1'],
    ],
  )
  assert.match((await tenure('rebalances')).stdout, /^once +requested +balance/m)
  assert.equal((await json('rebalances once'))['id'], 'once')
  assert.equal((await tenure('rebalances none')).exitCode, 4)
})

test('tenure freeze --for, a time, becomes the time it lasts until', async (t) => {
  const { json } = await served(t)
  const before = Date.now()
  const until = Number((await json('freeze --for 10m'))['untilMs'])
  assert.ok(until >= before + 600_000 && until <= Date.now() + 600_000)
})

test('tenure rebalance --dry-run, a plan, shows it and changes nothing', async (t) => {
  const { group, tenure } = await served(t)
  assert.match((await tenure('rebalance --dry-run')).stdout, /nothing would move/)
  group.plan.push({ partition: 7, from: memberName('orders-1'), to: memberName('orders-0') })
  const { stdout } = await tenure('rebalance --dry-run')
  assert.match(stdout, /^7 +orders-1 +orders-0$/m)
  assert.match(stdout, /1 would move\n$/)
  assert.deepEqual(group.calls, [])
})

test('tenure --wait, a rebalance that ends, follows it and exits by how it ended', async (t) => {
  const { group, tenure } = await served(t)
  for (const [state, exitCode] of [
    ['done', 0],
    ['failed', 1],
    ['cancelled', 1],
  ] as const) {
    group.rebalances.splice(0)
    const onWrite = (text: string) => {
      if (text.includes('not planned yet')) finish(group.rebalances[0], state)
    }
    const ran = await tenure('drain orders-1 --wait --json', { onWrite })
    assert.equal(ran.exitCode, exitCode, ran.stderr)
    assert.equal((JSON.parse(ran.stdout) as RebalanceRecord).state, state)
    assert.match(ran.stderr, /^drain orders-1 \(rebalance-0\): requested, not planned yet$/m)
  }
})

test('tenure --wait, past its --timeout, exits 6 and says how to go on', async (t) => {
  const { tenure } = await served(t)
  const ran = await tenure('rebalance --wait --timeout 300ms')
  assert.equal(ran.exitCode, 6)
  assert.match(ran.stderr, /after 300ms: it goes on; `tenure rebalances rebalance-0` shows it/)
  assert.equal(ran.stdout, '')
})

test('tenure --wait, interrupted, exits 130 and leaves the rebalance', async (t) => {
  const { group, tenure } = await served(t)
  const interrupt = new AbortController()
  const onWrite = () => interrupt.abort()
  const ran = await tenure('move 1 orders-0 --wait', { interrupted: interrupt.signal, onWrite })
  assert.equal(ran.exitCode, 130)
  assert.match(ran.stderr, /`tenure rebalance cancel rebalance-0` ends it/)
  assert.equal(group.rebalances[0]?.state, 'requested')
})

test('tenure watch, changes of the map, shows each once and resumes after a version', async (t) => {
  const { group, tenure } = await served(t)
  const change = (generation: number) => group.change({ partition: 2, generation })
  const watching = tenure('watch --count 3 --json')
  await eventually(() => group.listeners() === 1, { timeoutMs: 5000, what: 'the stream is open' })
  change(6)
  change(7)
  change(8)
  const { exitCode, stdout } = await watching
  assert.equal(exitCode, 0)
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    lines.map(({ event, partitions }) => [event, partitions?.[0]?.generation]),
    [
      ['start', undefined],
      ['map', 6],
      ['map', 7],
      ['map', 8],
    ],
  )
  const after = await tenure(`watch --count 1 --after ${lines[1].version}`)
  assert.match(after.stdout, /^1764440000\.102 +2 +owned +orders-0 generation 7/)
})

test('tenure watch, a version no longer kept, says that changes are missing', async (t) => {
  const { group, tenure } = await served(t)
  for (let generation = 6; generation < 16; generation++) group.change({ partition: 2, generation })
  const watching = tenure('watch --count 1 --after 1764440000.100')
  await eventually(() => group.listeners() === 1, { timeoutMs: 5000, what: 'the stream is open' })
  group.change({ partition: 1, generation: 9 })
  const { stderr } = await watching
  assert.match(stderr, /^reset at version .* changes before it are not shown$/m)
})

test('tenure, a server with a token, sends the token and says when it lacks one', async (t) => {
  const { tenure } = await served(t, { access: { bearerToken: 'hunter2' } })
  const without = await tenure('freeze')
  assert.equal(without.exitCode, 1)
  assert.match(without.stderr, /set TENURE_HTTP_TOKEN or --token-file$/m)
  const wrong = await tenure('freeze', { variables: { TENURE_HTTP_TOKEN: 'hunter1' } })
  assert.equal(wrong.exitCode, 1)
  assert.doesNotMatch(wrong.stderr + wrong.stdout, /hunter/)
  const files = { '/run/token': 'hunter2\n' }
  assert.equal((await tenure('freeze --token-file /run/token', { files })).exitCode, 0)
})

test('tenure, refusals of the group, exit with the code of what was refused', async (t) => {
  const { group, tenure } = await served(t)
  for (const [code, exitCode] of [
    ['conflict', 5],
    ['precondition-failed', 5],
    ['store-unreachable', 3],
    ['unknown-member', 4],
    ['invalid-argument', 2],
  ] as const) {
    group.refusal = { ok: false, code, detail: `refused: ${code}` }
    const ran = await tenure('cordon orders-0 --json')
    assert.equal(ran.exitCode, exitCode, code)
    const { error } = JSON.parse(ran.stderr) as { error: { code: string; exitCode: number } }
    assert.deepEqual([error.code, error.exitCode], [code, exitCode])
    assert.equal(ran.stdout, '')
  }
  assert.equal((await tenure('status --group nope')).exitCode, 4)
})
