/**
 * What every store promises (`src/ports/store.ts`), as one suite for all of them.
 *
 * Plan: transactions, lists, leases, watches and failing servers, each asked for what etcd does. One
 * world serves a whole suite, so each test works under a prefix of its own.
 */
import { after, before, describe } from 'node:test'
import { leaseContract } from './store-contract-leases.ts'
import { transactionLimitContract } from './store-contract-limits.ts'
import { listContract } from './store-contract-lists.ts'
import { serverContract } from './store-contract-server.ts'
import { transactionContract } from './store-contract-transactions.ts'
import { watchContract } from './store-contract-watches.ts'
import type { CleanUp, StoreWorld } from './world.ts'

/** Gives a test the world, once the suite has made it. */
export type WorldOf = () => StoreWorld

export function storeContract(
  name: string,
  makeWorld: (cleanUp: CleanUp) => Promise<StoreWorld>,
): void {
  describe(`store contract: ${name}`, () => {
    let world: StoreWorld | null = null
    const cleanUps: (() => void | Promise<void>)[] = []
    const worldOf: WorldOf = () => {
      if (world === null) throw new Error('the world is not made yet')
      return world
    }
    before(async () => {
      world = await makeWorld({ after: (callback) => cleanUps.push(callback) })
    })
    after(async () => {
      for (const cleanUp of cleanUps.reverse()) await cleanUp()
    })
    transactionContract(worldOf)
    transactionLimitContract(worldOf)
    listContract(worldOf)
    leaseContract(worldOf)
    watchContract(worldOf)
    // Last: it stops the server.
    serverContract(worldOf)
  })
}
