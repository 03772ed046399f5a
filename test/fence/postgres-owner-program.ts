/** An owner of the conformance suite as a process of its own: URL of the database, isolation level. */
import { Pool } from 'pg'
import { createPostgresFence, type PostgresIsolation } from '../../src/fence/postgres.ts'
import { serveFenceOwner } from '../../src/testing/index.ts'
import { effectOf } from './postgres-effects.ts'

const [, , url = '', isolation = ''] = process.argv
const pool = new Pool({ connectionString: url, max: 2 })
const fence = createPostgresFence(pool, { isolation: isolation as PostgresIsolation })
void serveFenceOwner({ fence, effectOf, close: () => pool.end() })
