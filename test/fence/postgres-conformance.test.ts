/** The PostgreSQL fence against the conformance suite: two processes, seeded points, each isolation level. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Pool } from 'pg'
import { migrate, type PostgresIsolation } from '../../src/fence/postgres.ts'
import { type FenceResource, fenceConformance, startFenceOwner } from '../../src/testing/index.ts'
import { createDatabase, startPostgres } from '../support/postgres.ts'
import { createEffects, readEffects } from './postgres-effects.ts'

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
  test(`an old owner stopped at ${points} points under ${isolation} is refused`, async () => {
    const report = await fenceConformance({
      makeResource: () => makeResource(isolation),
      points,
      seed: isolation,
    })
    assert.deepEqual(report.violations, [])
    assert.ok(report.sealedMeanwhile > points / 10, `${report.sealedMeanwhile}`)
    for (const [at, count] of Object.entries(report.stopped)) assert.ok(count > points / 10, at)
    assert.equal(report.restartChecked, true)
  })
}
