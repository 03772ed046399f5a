/** The PostgreSQL fence against the conformance suite: two processes, seeded points, each isolation level. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Pool } from 'pg'
import { migrate, type PostgresIsolation } from '../../src/fence/postgres.ts'
import { type FenceResource, fenceConformance, startFenceOwner } from '../../src/testing/index.ts'
import { createDatabase, startPostgres } from '../support/postgres.ts'
import { createEffects, isSealBlocked, readEffects } from './postgres-effects.ts'

const PROGRAM = fileURLToPath(new URL('postgres-owner-program.ts', import.meta.url))
const server = await startPostgres({ after })

const makeResource = async (isolation: PostgresIsolation): Promise<FenceResource> => {
  const { url } = await createDatabase(server)
  const pool = new Pool({ connectionString: url })
  pool.on('error', () => {})
  await migrate(pool)
  await createEffects(pool)
  return {
    owner: () => startFenceOwner({ program: PROGRAM, args: [url, isolation] }),
    applied: (partition) => readEffects(pool, partition),
    sealWaits: (partition) => isSealBlocked(pool, partition),
    async restart() {
      await server.kill()
      await server.restart()
    },
    close: () => pool.end(),
  }
}

const LEVELS: readonly (readonly [PostgresIsolation, number])[] = [
  ['read committed', 200],
  ['repeatable read', 100],
  ['serializable', 100],
]

for (const [isolation, points] of LEVELS) {
  test(`an old owner stopped at ${points} points under ${isolation} is refused`, async (t) => {
    const report = await fenceConformance({
      makeResource: () => makeResource(isolation),
      points,
      seed: isolation,
    })
    t.diagnostic(JSON.stringify(report.stops))
    assert.deepEqual(report.violations, [])
    const each = points / 4
    const { before, during, checked, written } = report.stops
    assert.deepEqual(before, { stopped: each, sealedMeanwhile: each, sealWaited: 0 })
    assert.ok(during.stopped > 0, 'some transaction was stopped on its way')
    // Between check and commit the row is locked: PostgreSQL itself says that the seal waits for it.
    for (const inside of [checked, written]) {
      assert.deepEqual(inside, { stopped: each, sealedMeanwhile: 0, sealWaited: each })
    }
    assert.equal(report.restartChecked, true)
  })
}
