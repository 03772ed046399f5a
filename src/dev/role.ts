/** Entry of the demo's own processes: `role.ts ledger|producer <options as JSON>`. */
import { type LedgerOptions, runLedger } from './ledger.ts'
import { type ProducerOptions, runProducer } from './producer.ts'

const [role, text] = process.argv.slice(2)
const options: unknown = JSON.parse(text ?? '{}')

switch (role) {
  case 'ledger':
    await runLedger(options as LedgerOptions)
    break
  case 'producer':
    await runProducer(options as ProducerOptions)
    break
  default:
    throw new Error(`no such role: ${role}`)
}
