/**
 * A network namespace per node, all on one bridge that stands in a namespace of its own: no address, no
 * route and no rule of the machine is touched, and none can be in the way.
 *
 *   watchdog up → namespaces made → … → pipe closed → everything in them killed, namespaces gone
 *
 * The watchdog is a shell in a session of its own that waits for the end of a pipe whose write end is
 * ours. However this process ends, it kills what still runs inside these namespaces, and removes them.
 * What a run left behind whose watchdog was killed too is removed by the next one.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Layout, NodePlace } from './layout.ts'

const NAMESPACES = '/run/netns'
const NAME = /^tenure-chaos-(\d+)-/
const PROGRAMS = ['ip', 'nsenter', 'iptables', 'setpriv'] as const
const FOLDERS = ['/usr/sbin', '/sbin', '/usr/bin', '/bin']

const REMOVE = `
for round in 1 2 3; do
  for name in "$@"; do
    for pid in $(ip netns pids "$name" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
  done
done
for name in "$@"; do ip netns delete "$name" 2>/dev/null; done
exit 0
`
const WATCHDOG = `cat >/dev/null\n${REMOVE}`

export type Network = {
  readonly layout: Layout
  /** Ends what still runs in it. */
  remove(): Promise<void>
}

/** Programs of the system are found also where a user's PATH does not reach. */
export function systemEnvironment(): NodeJS.ProcessEnv {
  const path = [process.env['PATH'] ?? '', ...FOLDERS].filter((folder) => folder !== '')
  return { ...process.env, PATH: path.join(delimiter) }
}

export function namespacePrefix(seed: number): string {
  return `tenure-chaos-${process.pid}-${seed.toString(36)}-`
}

/** Words that run a program inside the namespace, in the same process. */
export function within(namespace: string): readonly string[] {
  return ['nsenter', `--net=${join(NAMESPACES, namespace)}`, '--']
}

/** Why no network can be made here, in words that name the remedy; null: it can. */
export function findObstacle(): string | null {
  if (process.platform !== 'linux') return 'network namespaces are Linux’s: run it on Linux'
  if (process.getuid?.() !== 0) return 'network namespaces need root: run it as root'
  const path = systemEnvironment()['PATH'] ?? ''
  const isThere = (program: string) =>
    path.split(delimiter).some((folder) => existsSync(join(folder, program)))
  const missing = PROGRAMS.filter((program) => !isThere(program))
  if (missing.length > 0) {
    return `${missing.join(', ')} not found: run "TENURE_SETUP=test bash deploy/setup.sh"`
  }
  return tryOnce()
}

/** Makes of each thing one, and removes it again. */
function tryOnce(): string | null {
  const name = `tenure-chaos-${process.pid}-try`
  try {
    run('ip', ['netns', 'add', name])
    const inside = within(name).slice(1)
    run('nsenter', [...inside, 'ip', 'link', 'add', 'bridge0', 'type', 'bridge'])
    run('nsenter', [...inside, 'ip', 'link', 'add', 'one', 'type', 'veth', 'peer', 'name', 'two'])
    run('nsenter', [...inside, 'iptables', '-w', '-A', 'INPUT', '-s', '127.0.0.2', '-j', 'DROP'])
    return null
  } catch (error: unknown) {
    return `this system allows no namespace with a bridge and iptables: ${messageOf(error)}`
  } finally {
    removeNamespaces([name])
  }
}

/** @throws Error when a step fails; nothing is left then. */
export async function createNetwork(layout: Layout): Promise<Network> {
  removeLeftovers()
  const names = [layout.hub.namespace, ...layout.nodes.map(({ namespace }) => namespace)]
  const watchdog = spawn('sh', ['-c', WATCHDOG, 'sh', ...names], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: systemEnvironment(),
  })
  watchdog.stdin?.on('error', () => {})
  const remove = () => endWatchdog(watchdog)
  try {
    createHub(layout)
    for (const [index, node] of layout.nodes.entries()) attach(layout, node, index)
  } catch (error: unknown) {
    await remove()
    throw error
  }
  return { layout, remove }
}

function createHub({ hub }: Layout): void {
  run('ip', ['netns', 'add', hub.namespace])
  inHub(hub.namespace, 'ip', ['link', 'add', 'bridge0', 'type', 'bridge'])
  inHub(hub.namespace, 'ip', ['address', 'add', `${hub.address}/24`, 'dev', 'bridge0'])
  inHub(hub.namespace, 'ip', ['link', 'set', 'bridge0', 'up'])
  inHub(hub.namespace, 'ip', ['link', 'set', 'lo', 'up'])
}

function attach({ hub }: Layout, node: NodePlace, index: number): void {
  const { namespace, address } = node
  const port = `port${index}`
  run('ip', ['netns', 'add', namespace])
  inHub(hub.namespace, 'ip', [
    ...['link', 'add', port, 'type', 'veth'],
    ...['peer', 'name', 'eth0', 'netns', namespace],
  ])
  inHub(hub.namespace, 'ip', ['link', 'set', port, 'master', 'bridge0', 'up'])
  inHub(namespace, 'ip', ['address', 'add', `${address}/24`, 'dev', 'eth0'])
  inHub(namespace, 'ip', ['link', 'set', 'eth0', 'up'])
  inHub(namespace, 'ip', ['link', 'set', 'lo', 'up'])
}

function inHub(namespace: string, program: string, words: readonly string[]): void {
  const [entering = '', ...rest] = within(namespace)
  run(entering, [...rest, program, ...words])
}

/** Namespaces of runs whose process is gone. */
function removeLeftovers(): void {
  if (!existsSync(NAMESPACES)) return
  const dead = readdirSync(NAMESPACES).filter((name) => {
    const pid = NAME.exec(name)?.[1]
    return pid !== undefined && Number(pid) !== process.pid && !existsSync(`/proc/${pid}`)
  })
  if (dead.length > 0) removeNamespaces(dead)
}

function removeNamespaces(names: readonly string[]): void {
  spawnSync('sh', ['-c', REMOVE, 'sh', ...names], { env: systemEnvironment(), stdio: 'ignore' })
}

async function endWatchdog(watchdog: ChildProcess): Promise<void> {
  if (watchdog.exitCode !== null || watchdog.signalCode !== null) return
  const closed = once(watchdog, 'close')
  watchdog.stdin?.end()
  await closed
}

function run(program: string, words: readonly string[]): void {
  execFileSync(program, words, { env: systemEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] })
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.trim().split('\n').slice(-1)[0] ?? text
}
