// Plan: build the document anew and compare it with the file; check what every operation must say.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { buildOpenApi } from '../../src/http/openapi.ts'

const FILE = new URL('../../src/http/openapi.json', import.meta.url)
type Operation = {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly responses: Readonly<Record<string, unknown>>
  readonly security?: unknown
}

describe('OpenAPI document', () => {
  test('the checked-in file, built anew, has not drifted', async () => {
    const built = await buildOpenApi()
    assert.equal(readFileSync(FILE, 'utf8'), built, 'run: npm run openapi')
  })

  test('every operation has a name of its own, a summary and its refusals', async () => {
    const document = JSON.parse(await buildOpenApi())
    assert.equal(document.openapi, '3.1.0')
    const operations = Object.values<Record<string, Operation>>(document.paths).flatMap((path) =>
      Object.values(path),
    )
    const names = operations.map(({ operationId }) => operationId)
    assert.equal(new Set(names).size, names.length)
    assert.equal(names.length, 30)
    for (const { operationId, summary, tags, responses, security } of operations) {
      assert.ok(summary.length > 0, operationId)
      if (!tags.includes('changes')) continue
      assert.deepEqual(security, [{ bearer: [] }], operationId)
      for (const status of ['401', '403', '404', '409', '412', '503']) {
        assert.ok(status in responses, `${operationId} ${status}`)
      }
    }
  })

  test('every reference, followed, ends at a component', async () => {
    const text = await buildOpenApi()
    const { schemas } = JSON.parse(text).components
    const references = [...text.matchAll(/"\$ref": "([^"]+)"/g)].map((match) => match[1])
    assert.ok(references.length > 20)
    for (const reference of references) {
      const name = reference?.match(/^#\/components\/schemas\/(\w+)$/)?.[1]
      assert.ok(name !== undefined && name in schemas, reference)
    }
  })
})
