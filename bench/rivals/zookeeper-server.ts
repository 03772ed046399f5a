/** ZooKeeper as a child of this process, from the jars of Debian's package, on a free loopback port. */
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import {
  findFreePorts,
  type ServerProcess,
  startServerProcess,
} from '../../src/dev/servers-process.ts'

export const JAVA = '/usr/bin/java'
/** Its manifest names the other jars that the server needs. */
export const ZOOKEEPER_JAR = '/usr/share/java/zookeeper.jar'
/** Sessions run out at whole ticks, and the shortest one that a client may ask for is two of them. */
const TICK_MS = 500
const SESSION_MAX_MS = 60_000
const PROBE_TIMEOUT_MS = 1000
const READY_TIMEOUT_MS = 60_000

export async function startZookeeper(
  folder: string,
): Promise<ServerProcess & { readonly address: string }> {
  const [port = 0] = await findFreePorts(1)
  mkdirSync(folder, { recursive: true })
  const settings = join(folder, 'zoo.cfg')
  const lines = [
    `tickTime=${TICK_MS}`,
    `dataDir=${join(folder, 'data')}`,
    `clientPort=${port}`,
    'clientPortAddress=127.0.0.1',
    `maxSessionTimeout=${SESSION_MAX_MS}`,
    'admin.enableServer=false',
    '4lw.commands.whitelist=ruok',
  ]
  writeFileSync(settings, `${lines.join('\n')}\n`)
  const server = await startServerProcess({
    name: 'zookeeper',
    program: JAVA,
    args: ['-cp', ZOOKEEPER_JAR, 'org.apache.zookeeper.server.ZooKeeperServerMain', settings],
    workingFolder: folder,
    ports: [port],
    logFile: join(folder, 'zookeeper.log'),
    isReady: () => answers(port),
    readyTimeoutMs: READY_TIMEOUT_MS,
  })
  return { ...server, address: `127.0.0.1:${port}` }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error('no answer')))
  try {
    await once(socket, 'connect')
    socket.write('ruok')
    const [answer] = await once(socket, 'data')
    return String(answer) === 'imok'
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
