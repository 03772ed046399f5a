/**
 * What the OpenAPI document says beside the routes. Headers are documented by a route's
 * `config.documentedHeaders` and not by its schema, so that no request pays for checking them.
 */
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { FastifySchema, RouteOptions } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly documentedHeaders?: HeaderSchemas
  }
}

export type HeaderSchemas = Readonly<Record<string, { readonly description: string }>>

const OPENAPI_BASE: NonNullable<FastifyDynamicSwaggerOptions['openapi']> = {
  openapi: '3.1.0',
  info: {
    title: 'Tenure',
    version: '1',
    description:
      'Ownership of partitions by generation. Reads come from memory and say how old they are; ' +
      'changes are durable before they are answered. Every refusal is application/problem+json ' +
      'with a stable `code`.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  tags: [
    { name: 'reads', description: 'Answered from memory, also while the store is away.' },
    { name: 'changes', description: 'Need the token, or loopback where none is configured.' },
    { name: 'process', description: 'Of this process.' },
  ],
  components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
}

/** Components keep the names of their shapes. */
const schemaReference = {
  buildLocalReference: (
    json: { readonly $id?: unknown },
    _base: unknown,
    _part: string,
    index: number,
  ) => (typeof json.$id === 'string' ? json.$id : `shape-${index}`),
}

export const OPENAPI_OPTIONS: FastifyDynamicSwaggerOptions = {
  openapi: OPENAPI_BASE,
  refResolver: schemaReference,
  transform: ({ schema, url, route }) => ({ schema: withHeaders(schema, route), url }),
}

function withHeaders(schema: FastifySchema, route: RouteOptions): FastifySchema {
  const headers = Object.entries(route.config?.documentedHeaders ?? {})
  if (headers.length === 0) return schema
  const properties = Object.fromEntries(
    headers.map(([name, header]) => [name, { type: 'string', ...header }]),
  )
  return { ...schema, headers: { type: 'object', properties } }
}
