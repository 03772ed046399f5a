/**
 * Plan: nodes reach each other and nothing of the machine; a run that is killed leaves no namespace and no
 * process behind; what a run left whose watchdog was killed too goes with the next one. Only where
 * namespaces can be had.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eventually } from '../support/eventually.ts'
import { createLayout, placesOf } from './layout.ts'
import { createNetwork, findObstacle, systemEnvironment, within } from './network.ts'

const skip = findObstacle() ?? false
const SOON = { timeoutMs: 30_000 }
const PID_MAX = 4_194_304

function namespacesOf(prefix: string): readonly string[] {
  if (!existsSync('/run/netns')) return []
  return readdirSync('/run/netns').filter((name) => name.startsWith(prefix))
}

/** Exit code 0: a connection to the address from inside the namespace was answered, or refused. */
function reaches(namespace: string, host: string): boolean {
  const [program = '', ...words] = within(namespace)
  const script = `
    const socket = require('net').connect({ host: '${host}', port: 9 })
    socket.setTimeout(2000, () => process.exit(1))
    socket.on('error', (error) => process.exit(error.code === 'ECONNREFUSED' ? 0 : 1))`
  try {
    execFileSync(program, [...words, process.execPath, '-e', script], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

test('nodes reach each other, nothing else, and go without a trace', { skip }, async () => {
  const prefix = `tenure-chaos-${process.pid}-a-`
  const layout = createLayout(prefix)
  const network = await createNetwork(layout)
  const [worker] = placesOf(layout, 'worker')
  const [etcd] = placesOf(layout, 'etcd')
  try {
    assert.ok(reaches(worker?.namespace ?? '', etcd?.address ?? ''))
    assert.ok(!reaches(worker?.namespace ?? '', '192.0.2.1'))
  } finally {
    await network.remove()
  }
  assert.deepEqual(namespacesOf(prefix), [])
})

test('a run that is killed leaves no namespace and no process', { skip }, async () => {
  const prefix = `tenure-chaos-${process.pid}-b-`
  const program = fileURLToPath(new URL('./network-owner-program.ts', import.meta.url))
  const owner = spawn(process.execPath, [...process.execArgv, program, prefix], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: systemEnvironment(),
  })
  const [line] = (await once(owner.stdout, 'data')) as [Buffer]
  const { sleeper } = JSON.parse(String(line)) as { sleeper: number }
  assert.notEqual(namespacesOf(prefix).length, 0)
  owner.kill('SIGKILL')
  const isGone = () => namespacesOf(prefix).length === 0 && !isRunning(sleeper)
  await eventually(isGone, { ...SOON, what: 'nothing of it to be left' })
})

test('what a dead run left behind goes with the next', { skip }, async () => {
  const dead = `tenure-chaos-${PID_MAX + 1}-c-hub`
  execFileSync('ip', ['netns', 'add', dead], { env: systemEnvironment() })
  const network = await createNetwork(createLayout(`tenure-chaos-${process.pid}-d-`))
  await network.remove()
  assert.deepEqual(namespacesOf(dead), [])
})

/** A killed process whose parent does not ask stays as an entry without a program. */
function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}/exe`)
}
