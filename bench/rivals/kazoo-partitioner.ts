/**
 * kazoo's `SetPartitioner` on ZooKeeper, the rival that does the same whole job. After every change of
 * its members all of them give everything up and take new shares when nothing has changed for the
 * *time boundary*: 1 s here, where its default is 30 s.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { createRival } from './create-rival.ts'
import { filePath, packageVersion, whatIsMissing } from './programs.ts'
import type { MemberTask, Stage, StageSettings } from './rival-kind.ts'
import { JAVA, startZookeeper, ZOOKEEPER_JAR } from './zookeeper-server.ts'

const run = promisify(execFile)
/** The system's: it is the one that finds Debian's packages. */
const PYTHON = '/usr/bin/python3'
const PROGRAM = filePath('kazoo_partitioner_member.py')
const TIME_BOUNDARY_MS = 1000
/** A lock of three requests and a flush per partition, one after the other, twice. */
const FAILOVER_PARTITIONS_MAX = 1000

export const kazooPartitioner = createRival({
  name: 'kazoo SetPartitioner',
  async version() {
    const show = 'import kazoo.version; print(kazoo.version.__version__)'
    const [kazoo, zookeeper] = await Promise.all([
      run(PYTHON, ['-c', show]),
      packageVersion('libzookeeper-java'),
    ])
    return `${kazoo.stdout.trim()} (ZooKeeper ${zookeeper})`
  },
  isPresent: async () =>
    whatIsMissing({
      'python3-kazoo': '/usr/lib/python3/dist-packages/kazoo/recipe/partitioner.py',
      'libzookeeper-java': ZOOKEEPER_JAR,
      'default-jre-headless': JAVA,
    }),
  promises: [
    'equal shares of a set among the members of a party',
    'a lock on each partition before a member works on it',
  ],
  doesNotPromise: [
    'that work goes on while members come and go: all members stop and share anew, after the time boundary (30 s by default, 1 s here)',
    'that the old holder stops before the new one begins: a paused process believes until its connection tells it otherwise',
    'a fencing token or a generation',
    'that an owner keeps its partitions when members change: shares follow from sorted lists',
    'recovery by itself: a partitioner that has failed must be made anew',
  ],
  failoverPartitionsMax: FAILOVER_PARTITIONS_MAX,
  settleMs: TIME_BOUNDARY_MS,
  open: openStage,
})

async function openStage(settings: StageSettings): Promise<Stage> {
  const server = await startZookeeper(settings.folder)
  const { prefix, leaseTtlMs } = settings
  const boundary = String(TIME_BOUNDARY_MS)
  return {
    command: [PYTHON, PROGRAM, boundary],
    store: server.address,
    async watchExpiry(member) {
      const task: Partial<MemberTask> = { store: server.address, prefix, leaseTtlMs }
      const witness = spawn(PYTHON, [PROGRAM, 'witness', boundary, JSON.stringify(task)])
      const lines = createInterface({ input: witness.stdout })
      const expired = new Promise<number>((resolve) => {
        lines.on('line', (line) => {
          const [word, atMs, who] = line.split(' ')
          if (word !== 'x' || who !== member) return
          resolve(Number(atMs))
          witness.stdin.end()
        })
      })
      await once(lines, 'line')
      return () => expired
    },
    close: () => server.stop(),
  }
}
