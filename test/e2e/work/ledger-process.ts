/** The demo's ledger as a process of its own, ended with the test. */
import { join } from 'node:path'
import { startRole } from '../../../src/dev/children.ts'
import { findFreePorts } from '../../../src/dev/servers-process.ts'
import type { CleanUp } from '../../support/servers.ts'
import { answers, GROUP } from './turmoil-world.ts'

export type LedgerProcess = { readonly url: string; readonly file: string }

export async function startLedger(
  cleanUp: CleanUp,
  options: { readonly logFolder: string; readonly effectMaxMs: number },
): Promise<LedgerProcess> {
  const { logFolder, effectMaxMs } = options
  const [port = 0] = await findFreePorts(1)
  const url = `http://127.0.0.1:${port}`
  const file = join(logFolder, 'ledger.jsonl')
  const ledger = await startRole(
    'ledger',
    { group: GROUP, port, logFile: file, effectMaxMs },
    {
      ...{ name: 'ledger', logFolder, ports: [port] },
      isReady: () => answers(`${url}/state`),
    },
  )
  cleanUp.after(() => ledger.stop())
  return { url, file }
}
