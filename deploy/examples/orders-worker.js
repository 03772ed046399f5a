// A worker module for `tenure worker ./orders-worker.js`: its `worker` export is the options of
// `startWorker`. Group, member name and servers come from the environment (TENURE_*).
//
// A timer stands for the orders of a partition, so that this runs without a queue and a database. Where
// you would put yours: read the position in `acquire`, the messages in `run`, save in `release`.
import { setTimeout as wait } from 'node:timers/promises'

const ORDER_EVERY_MS = 200
const ORDER_TAKES_MS = 50

export const worker = {
  // Owner, not serving yet: raise the fence of each resource to p.token here, then load.
  acquire: () => ({ handled: 0 }),

  run: async (p, cursor) => {
    // Orders of the partitions should not all fall due at once.
    await pause(Math.random() * ORDER_EVERY_MS, p.draining)
    while (!p.draining.aborted) {
      await p.work(() => handleOrder(cursor))
      await pause(ORDER_EVERY_MS, p.draining)
    }
  },

  // Drained, and still the owner.
  release: (p, cursor) => report('released', p, cursor),

  // Not the owner any more: discard, write nothing to what p.token protects.
  lost: (p, cursor) => report('lost', p, cursor),
}

/** Admitted work runs to its end, also when the partition is revoked meanwhile. */
async function handleOrder(cursor) {
  await wait(ORDER_TAKES_MS)
  cursor.handled += 1
}

/** Until the time is over or the partition is revoked. */
function pause(delayMs, draining) {
  return wait(delayMs, undefined, { signal: draining }).catch(() => {})
}

function report(what, p, cursor) {
  console.log(JSON.stringify({ orders: what, partition: p.id, handled: cursor.handled }))
}
