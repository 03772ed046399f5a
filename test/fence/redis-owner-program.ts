/** An owner of the conformance suite as a process of its own: port of the server. */
import { Redis } from 'ioredis'
import { createRedisFence, type RedisEffect, redisKey } from '../../src/fence/redis.ts'
import { serveFenceOwner } from '../../src/testing/index.ts'
import { entryOf } from './list-entries.ts'

const port = Number(process.argv[2])
const redis = new Redis({ host: '127.0.0.1', port, autoResendUnfulfilledCommands: false })
const fence = createRedisFence(redis, { group: 'conformance' })
void serveFenceOwner({
  fence,
  effectOf: (token, number): RedisEffect => ({
    commands: [['rpush', redisKey(token, 'effects'), entryOf(token, number)]],
  }),
  close: async () => redis.disconnect(),
})
