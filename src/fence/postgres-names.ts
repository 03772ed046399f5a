/** The schema that the fence's tables are in, quoted for SQL. */
import { createTenureError } from '../core/tenure-error.ts'

const DEFAULT_SCHEMA = 'public'
const SCHEMA = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/

/** @throws TenureError `invalid-argument` unless 1-63 letters, digits and `_`, not first a digit. */
export function schemaNameOf(schema: string = DEFAULT_SCHEMA): string {
  if (SCHEMA.test(schema)) return `"${schema}"`
  throw createTenureError(
    'invalid-argument',
    `schema "${schema}" must be 1-63 letters, digits or "_", not starting with a digit`,
    { details: { field: 'schema' } },
  )
}
