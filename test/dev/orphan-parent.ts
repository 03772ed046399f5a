/**
 * A process for `servers.test.ts` to kill: starts the servers that it was told to, prints where they
 * are, and stays. With `pause` as third argument it stops etcd first, the hardest child to end.
 */
import { startEtcdServer, startNatsServer } from '../../src/dev/servers.ts'

const [directory = '', mode = ''] = process.argv.slice(2)
const etcd = await startEtcdServer({ directory: `${directory}/etcd`, unsafeNoFsync: true })
const nats = await startNatsServer({ directory: `${directory}/nats`, jetStream: true })
if (mode === 'pause') etcd.pause()
const ports = [etcd.clientPort, etcd.peerPort, nats.port]
process.stdout.write(`${JSON.stringify({ pids: [etcd.pid(), nats.pid()], ports })}\n`)
