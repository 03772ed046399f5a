/**
 * Run by `stray-errors.test.ts`, since a test runner takes stray errors for its own: errors of a worker's
 * code that nobody catches, in each of the ways in which they reach the process.
 */
import { createTestCluster, type TestProcess } from '../../src/testing/index.ts'

const WAYS: Readonly<Record<string, (process: TestProcess) => void>> = {
  timer: (process) => {
    process.process.schedule(10, () => {
      throw new Error('stray timer')
    })
  },
  rejection: (process) => {
    void process.sleep(10).then(() => {
      throw new Error('stray rejection')
    })
  },
  'next tick': (process) => {
    const fail = () => {
      throw new Error('stray next tick')
    }
    process.process.schedule(10, () => globalThis.process.nextTick(fail))
  },
}

for (const [way, stray] of Object.entries(WAYS)) {
  const cluster = await createTestCluster({ partitions: 1 })
  const innocent = await cluster.startWorker('innocent', {})
  const guilty = await cluster.startWorker('guilty', (process: TestProcess) => {
    stray(process)
    return {}
  })
  await cluster.advance(2_000)
  console.log(`${way}: ${guilty.failure?.message}, ${guilty.process.status}, ${innocent.state}`)
  await cluster.close().catch((error: Error) => console.log(error.message))
}
