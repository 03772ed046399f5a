/**
 * A member that holds a redlock per partition: `lock` until it has it, then `extend` at each third of the
 * time to live, as redlock's documentation shows. Who stands by tries again and again, for Redis tells
 * nobody that a lock has run out.
 */
import { Redis } from 'ioredis'
import Redlock, { type Answer, type Lock, type RedisLike } from 'redlock'
import { openMember } from './member-side.ts'

const member = openMember()
const { store, prefix, leaseTtlMs } = member.task
const redis = new Redis(store)
/** redlock 4 wants to be called back; ioredis answers with promises only. */
const client: RedisLike = {
  evalsha(hash, [keys = 0, ...words], answer) {
    callBack(redis.evalsha(hash, keys, ...words), answer)
  },
  eval([script = '', keys = 0, ...words], answer) {
    callBack(redis.eval(String(script), keys, ...words), answer)
  },
}
/** As in its documentation. */
const redlock = new Redlock([client], {
  ...{ driftFactor: 0.01, retryCount: 10, retryDelay: 200, retryJitter: 200 },
})
/** A member stands by as long as it lives. */
const FOR_EVER = { retryCount: -1 }
const locks = new Map<number, Lock>()

async function hold(partition: number): Promise<void> {
  for (;;) {
    const lock = await redlock.lockWithOptions(`${prefix}${partition}`, leaseTtlMs, FOR_EVER)
    locks.set(partition, lock)
    member.held([partition])
    await untilLost(partition, lock)
    locks.delete(partition)
    member.lost([partition])
  }
}

async function untilLost(partition: number, lock: Lock): Promise<void> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, leaseTtlMs / 3))
    try {
      await lock.extend(leaseTtlMs)
    } catch (error: unknown) {
      member.failed(`partition ${partition}: ${error}`)
      return
    }
  }
}

function callBack(answered: Promise<unknown>, answer: Answer): void {
  answered.then(
    // What it returns is a promise of redlock's own, and not to be waited for here.
    (value) => void answer(null, value),
    (error) => void answer(error),
  )
}

await redis.ping()
await member.begin()
for (const partition of member.own) void hold(partition)
await member.standby
for (const partition of member.others) void hold(partition)
member.standing()
