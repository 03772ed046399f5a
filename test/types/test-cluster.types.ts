/**
 * Compile-time tests of the kit's types: checked by `tsc`, never run. The cursor's type comes from `acquire`
 * in an object, and is named for a program that makes the options anew in each life.
 */
import type { TestCluster } from '../../src/testing/index.ts'

export async function compiles(cluster: TestCluster): Promise<void> {
  await cluster.startWorker('orders-1', {
    acquire: async (p) => ({ position: p.id }),
    run: (_, cursor) => void cursor.position.toFixed(),
    release: (_, cursor) => {
      // @ts-expect-error the cursor has no such field
      cursor.place
    },
  })
  cluster.spawnWorker<number>('orders-2', (process) => ({
    acquire: () => process.life,
    lost: (p, cursor, cause) => void `${p.id} ${cursor.toFixed()} ${cause}`,
  }))
  const worker = await cluster.startWorker('orders-3', { run: (p) => p.check() })
  // @ts-expect-error a worker is no serve process
  worker.admin
}
