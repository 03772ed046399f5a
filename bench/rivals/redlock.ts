/**
 * `redlock` on one Redis that flushes each write, the fastest way to run it; its documentation asks for
 * three or more independent ones. A development dependency, for no other package is this recipe.
 */
import { Redis } from 'ioredis'
import { machineMs } from '../../src/dev/machine-time.ts'
import { startRedisServer } from '../../src/dev/redis-server.ts'
import { findServerProgram } from '../../src/dev/servers-binaries.ts'
import { createRival } from './create-rival.ts'
import { npmVersion, typescriptProgram } from './programs.ts'
import type { Stage, StageSettings } from './rival-kind.ts'

/** Each member tries each lock about five times a second to stand by. */
const FAILOVER_PARTITIONS_MAX = 200

export const redlock = createRival({
  name: 'redlock',
  version: async () => npmVersion('redlock'),
  async isPresent() {
    try {
      findServerProgram('redis-server')
      return null
    } catch (error: unknown) {
      return error instanceof Error ? error.message : String(error)
    }
  },
  promises: ['one holder of a lock as long as clocks run alike and no process pauses'],
  doesNotPromise: [
    'that the old holder stops before the new one begins: it must look at the clock itself',
    'a fencing token: its lock values are random',
    'that somebody is told of a free lock: who stands by tries again and again',
    'a drain, a planned move or a balanced share',
    'a map of who holds what',
  ],
  failoverPartitionsMax: FAILOVER_PARTITIONS_MAX,
  settleMs: 0,
  open: openStage,
})

async function openStage({ folder, prefix }: StageSettings): Promise<Stage> {
  const server = await startRedisServer({ directory: folder })
  const redis = new Redis(server.url)
  return {
    command: await typescriptProgram('redlock-member.ts'),
    store: server.url,
    async watchExpiry(_member, partitions) {
      return async () => {
        const asked = partitions.map((partition) => redis.pttl(`${prefix}${partition}`))
        const leftMs = Math.max(...(await Promise.all(asked)))
        return machineMs() + leftMs
      }
    },
    async close() {
      redis.disconnect()
      await server.stop()
    },
  }
}
