/** `npm run openapi`: writes `openapi.json` beside this file. */
import { writeFileSync } from 'node:fs'
import { buildOpenApi } from './openapi.ts'

writeFileSync(new URL('openapi.json', import.meta.url), await buildOpenApi())
