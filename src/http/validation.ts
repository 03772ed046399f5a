/**
 * Checks of what callers send. Unknown fields are refused and named, never dropped: a misspelt filter
 * must not look like a filter that matched everything. Queries and paths are text and are converted;
 * JSON bodies are typed already and are taken as they are. Headers are documented in the schemas and
 * parsed by the code that uses them.
 */
import { Ajv, type ErrorObject, type Options } from 'ajv'
import type { FastifySchemaCompiler, FastifySchemaValidationError } from 'fastify'
import { createProblem, type FieldProblem, type ProblemError } from './problem.ts'

const COMMON: Options = {
  removeAdditional: false,
  useDefaults: true,
  allErrors: true,
  discriminator: true,
  verbose: true,
}

/** How many fields one reply names. */
const FIELDS_MAX = 20

export function createValidatorCompiler(): FastifySchemaCompiler<object> {
  const converting = new Ajv({ ...COMMON, coerceTypes: true })
  const exact = new Ajv(COMMON)
  return ({ schema, httpPart }) => {
    if (httpPart === 'headers') return () => true
    return (httpPart === 'body' ? exact : converting).compile(schema)
  }
}

/** The 400 for a request that its schema refuses. */
export function problemOfValidation(
  errors: readonly FastifySchemaValidationError[],
  part: string,
): ProblemError {
  const fields = new Map<string, FieldProblem>()
  for (const error of errors as readonly (FastifySchemaValidationError & Partial<ErrorObject>)[]) {
    const field = fieldOf(error) || part
    if (fields.size < FIELDS_MAX && !fields.has(field)) {
      fields.set(field, { field, message: messageOf(error) })
    }
  }
  const problems = [...fields.values()]
  const detail = problems.map(({ field, message }) => `${field} ${message}`).join('; ')
  return createProblem('invalid-argument', `bad ${nameOf(part)}: ${detail}`, { errors: problems })
}

/** The 400 that names one field. */
export function problemOfField(field: string, message: string): ProblemError {
  return createProblem('invalid-argument', `${field} ${message}`, { errors: [{ field, message }] })
}

function fieldOf(error: FastifySchemaValidationError): string {
  const path = error.instancePath.split('/').slice(1)
  const { additionalProperty, missingProperty } = error.params
  if (error.keyword === 'discriminator') path.push(String(error.params['tag']))
  if (typeof additionalProperty === 'string') path.push(additionalProperty)
  if (typeof missingProperty === 'string') path.push(missingProperty)
  return path.join('.')
}

function messageOf(error: FastifySchemaValidationError & Partial<ErrorObject>): string {
  if (error.keyword === 'additionalProperties') {
    const known = Object.keys(error.parentSchema?.['properties'] ?? {})
    return known.length === 0
      ? 'is not known here: nothing may be given'
      : `is not known here: use ${known.join(', ')}`
  }
  if (error.keyword === 'required') return 'is missing'
  if (error.keyword === 'enum') {
    return `must be one of ${(error.params['allowedValues'] as readonly unknown[]).join(', ')}`
  }
  if (error.keyword === 'discriminator') return 'must be balance, move or drain'
  return error.message ?? 'is not valid'
}

function nameOf(part: string): string {
  if (part === 'querystring') return 'query'
  return part === 'params' ? 'path' : part
}
